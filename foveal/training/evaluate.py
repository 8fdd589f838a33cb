"""Evaluation: the means of loss and metrics over held-out batches."""

import math

import torch
from torch import nn

from foveal.core.progress import ProgressCallback, iterate_batches, no_progress
from foveal.core.result import PredictedLabels, Totals
from foveal.core.runtime import Precision, autocast, seed_everything
from foveal.core.state import State
from foveal.training.protocols import Batches, Objective
from foveal.training.step import starting_carry


def evaluate(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    *,
    precision: Precision = "float32",
    progress: ProgressCallback = no_progress,
    predicted_labels: dict[int, PredictedLabels] | None = None,
) -> dict[str, float]:
    """Evaluate every batch once, with the state carried from batch to batch.

    The labels of each row are added to `predicted_labels`. The result has the metrics of the objective. If
    the objective reports no metric `loss`, `loss` is the value of the objective. A mean is NaN if there is
    nothing to measure, as for answers that never occurred in training. Noise is the same in each evaluation.
    """
    model.eval()
    metrics, terms = Totals(), Totals()
    coefficients: dict[str, float] = {}
    carry: State = None
    device = next(model.parameters()).device
    with torch.no_grad():
        for index, batch in enumerate(iterate_batches(batches, progress)):
            seed_everything("evaluate", index)
            with autocast(device, precision):
                result, carry = objective(batch, starting_carry(objective, batch, carry))
            metrics.add(result.metrics)
            if predicted_labels is not None:
                predicted_labels |= result.predicted_labels
            terms.add({name: (float(term.sum), term.weight) for name, term in result.terms.items()})
            coefficients |= {name: term.coefficient for name, term in result.terms.items()}
    means = terms.means()
    loss = sum(coefficient * means.get(name, math.nan) for name, coefficient in coefficients.items())
    return {"loss": loss} | metrics.means()
