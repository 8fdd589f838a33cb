"""The output of an objective on a batch, as sums and weights, so that parts of a batch add up exactly."""

from dataclasses import dataclass, field
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Term:
    """One term of the objective: `coefficient * sum / (total weight of the step)`.

    `weight` depends only on the batch, never on the model. Its total over micro-batches and ranks is
    therefore known before the first backward pass, and K micro-batches equal one large batch.
    """

    sum: Float[Tensor, ""]
    weight: float
    coefficient: float = 1.0


class PredictedLabels(NamedTuple):
    """The label that a model gives each place of a row: ids and probabilities, and the row's loss in nats."""

    ids: list[int]
    probabilities: list[float]
    loss: float


@dataclass(frozen=True)
class ObjectiveOutput:
    """The terms to train on, and the metrics to report as name -> (sum, weight).

    In evaluation, an objective that predicts labels also fills `predicted_labels`, by row.
    """

    terms: dict[str, Term]
    metrics: dict[str, tuple[float, float]] = field(default_factory=dict)
    predicted_labels: dict[int, PredictedLabels] = field(default_factory=dict)


@dataclass
class Totals:
    """Running sums of metrics. `means()` divides once, at the end."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def add(self, metrics: dict[str, tuple[float, float]]) -> None:
        """Add the (sum, weight) of each metric."""
        for name, (total, weight) in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + total
            self.weights[name] = self.weights.get(name, 0.0) + weight

    def means(self) -> dict[str, float]:
        """Return the mean of each metric whose weight is not 0."""
        return {name: total / self.weights[name] for name, total in self.sums.items() if self.weights[name]}
