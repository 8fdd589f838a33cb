"""The losses of held-out rows, and means over resampled rows."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from foveal.core.progress import ProgressCallback
from foveal.core.runtime import autocast, seed_everything
from foveal.core.state import State
from foveal.metrics.student_t import Mean
from foveal.tasks.session import Session
from foveal.training.carry import starting_carry
from foveal.training.protocols import Batch

RESAMPLES = 2000
RESAMPLES_PER_PAIR = 100
"""Resamples for each pair beyond: with fewer the smallest p-value, times the pairs, is above 0.05."""
MIN_ROWS = 10
"""Rows without which resamples say nothing about other rows."""
RowLosses = Mapping[int, tuple[float, float]]
"""The sum of the losses of each row, and the number of tokens or labels that it is a sum over."""


def row_losses(session: Session, split: Any, progress: ProgressCallback) -> RowLosses:
    """Return the loss of each row of a held-out split. A text is cut into windows, which are its rows.

    Each row is computed alone, in float32. The state of a text is carried from row to row, as in evaluation.
    """
    batches = session.task.eval_batches(split)
    rows: list[int] = []
    losses: list[tuple[float, float]] = []
    carries: dict[int, State] = {}
    with torch.no_grad():
        for index in range(batches.per_epoch):
            progress(index, batches.per_epoch)
            batch = batches.batch(0, index)
            size = getattr(batch, "row_count", None)
            for place in range(size or 1):
                row = batch.cut(slice(place, place + 1)) if size else batch
                rows.append(int(batch.rows[place]) if hasattr(batch, "rows") else len(rows))
                loss, carries[place] = _loss(session, row, carries.get(place), index)
                losses.append(loss)
    # Windows of a text are numbered anew in each batch, and always come in one order.
    return dict(zip(rows if len({*rows}) == len(rows) else count(), losses, strict=False))


def _loss(session: Session, row: Batch, carry: State, index: int) -> tuple[tuple[float, float], State]:
    """Return the loss of a row, its weight, and the carry after the row."""
    objective = session.objective
    seed_everything("evaluate", index)
    with autocast(next(session.model.parameters()).device, "float32"):
        result, carry = objective(row, starting_carry(objective, row, carry))
    if "loss" in result.metrics:
        return result.metrics["loss"], carry
    terms = result.terms.values()
    total = sum(term.coefficient * float(term.sum) for term in terms)
    return (total, max(term.weight for term in terms)), carry


def resampled_mean(
    sums: NDArray[np.float64], weights: NDArray[np.float64], pairs: int = 1, seed: int = 0
) -> Mean:
    """Return the mean over all rows, with the 95 % percentile interval of resampled rows (Efron 1979).

    `sums` and `weights` (N,) are those of the rows. The p-value is that of the bootstrap: twice the part of
    the resamples on the other side of 0. It is one of those of so many `pairs`.
    """
    resamples = max(RESAMPLES, RESAMPLES_PER_PAIR * pairs)
    generator, count = np.random.default_rng(seed), len(sums)
    means = np.empty(resamples)
    for resample in range(resamples):
        rows = generator.integers(count, size=count)
        means[resample] = sums[rows].sum() / max(weights[rows].sum(), 1)
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    beyond = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p_value = min(1.0, 2 * (beyond + 1) / (resamples + 1))
    return Mean(float(sums.sum() / max(weights.sum(), 1)), low, high, p_value)
