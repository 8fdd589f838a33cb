"""Evaluation: the means of loss and metrics over held-out batches."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from foveal.core.progress import ProgressCallback, no_progress
from foveal.core.result import PredictedLabels, Totals
from foveal.core.runtime import Precision, autocast, seed_everything
from foveal.core.state import State
from foveal.training.agreement import ALONE, Agreement
from foveal.training.carry import starting_carry
from foveal.training.protocols import Batches, Objective
from foveal.training.share import share


@dataclass(frozen=True)
class _BatchScores:
    """The sums and weights of a batch, and its labels."""

    metrics: dict[str, tuple[float, float]]
    terms: dict[str, tuple[float, float]]
    coefficients: dict[str, float]
    predicted_labels: dict[int, PredictedLabels]


def evaluate(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    *,
    precision: Precision = "float32",
    progress: ProgressCallback = no_progress,
    predicted_labels: dict[int, PredictedLabels] | None = None,
    together: Agreement = ALONE,
) -> dict[str, float]:
    """Evaluate every batch once, with the state carried from batch to batch.

    The labels of each row are added to `predicted_labels`. The result has the metrics of the objective. If
    the objective reports no metric `loss`, `loss` is the value of the objective. A mean is NaN if there is
    nothing to measure, as for answers that never occurred in training. Noise is the same in each evaluation.
    The ranks that evaluate `together` take batches in turn, unless a batch continues the one before.
    """
    model.eval()
    metrics, terms = Totals(), Totals()
    coefficients: dict[str, float] = {}
    with torch.no_grad():
        for scores in _score_batches(model, objective, batches, precision, progress, together):
            metrics.add(scores.metrics)
            terms.add(scores.terms)
            coefficients |= scores.coefficients
            if predicted_labels is not None:
                predicted_labels |= scores.predicted_labels
    means = terms.means()
    loss = sum(coefficient * means.get(name, math.nan) for name, coefficient in coefficients.items())
    return {"loss": loss} | metrics.means()


def _score_batches(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    precision: Precision,
    progress: ProgressCallback,
    together: Agreement,
) -> Iterator[_BatchScores]:
    """Yield the scores of each batch, in order."""
    device = next(model.parameters()).device
    carry: State = None

    def score(index: int) -> _BatchScores:
        nonlocal carry
        batch = batches.batch(0, index)
        seed_everything("evaluate", index)
        with autocast(device, precision):
            result, carry = objective(batch, starting_carry(objective, batch, carry))
        terms = {name: (float(term.sum), term.weight) for name, term in result.terms.items()}
        coefficients = {name: term.coefficient for name, term in result.terms.items()}
        return _BatchScores(result.metrics, terms, coefficients, result.predicted_labels)

    among = together if together.world.size > 1 and not continues(batches) else ALONE
    return share(batches.per_epoch, score, progress, among)


def continues(batches: Batches) -> bool:
    """Return whether a batch continues the rows of the batch before, so that all batches are needed in
    order."""
    return batches.per_epoch > 0 and batches.batch(0, 0).stream_starts is not None
