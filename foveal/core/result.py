"""Result: what a task makes of a batch, in sums and weights, so that parts of a batch add up exactly."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Term:
    """One term of the objective: `coefficient * sum / (total weight of the step)`.

    `weight` depends on the batch alone, never on the model, so that its total over micro-batches and
    ranks is known before the first backward pass, and K micro-batches equal one big batch.
    """

    sum: Float[Tensor, ""]
    weight: float
    coefficient: float = 1.0


@dataclass(frozen=True)
class ObjectiveOutput:
    """The terms that are trained on, and the metrics that are reported: name -> (sum, weight).

    A task that chooses among labels says in evaluation which: `predicted_ids[row]` are the numbers of a
    row's.
    """

    terms: dict[str, Term]
    metrics: dict[str, tuple[float, float]] = field(default_factory=dict)
    predicted_ids: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class Totals:
    """Running sums of metrics; `means()` divides once, at the end."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def add(self, metrics: dict[str, tuple[float, float]]) -> None:
        for name, (total, weight) in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + total
            self.weights[name] = self.weights.get(name, 0.0) + weight

    def means(self) -> dict[str, float]:
        return {name: total / self.weights[name] for name, total in self.sums.items() if self.weights[name]}
