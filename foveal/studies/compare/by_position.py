"""The loss of models by the position of its targets: which models use what lies far back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from foveal.core.runtime import autocast
from foveal.tasks.session import Session

PositionLosses = dict[int, float]
"""The mean loss of the targets from one position to the next key, by the first position (from 1)."""


def losses_by_position(session: Session, split: Any) -> PositionLosses:
    """Return the mean loss at positions 1, 2, 3 to 4, 5 to 8 and so on of the targets of each row.

    The rows of a text are windows of its context. Each begins without history, so position t has t - 1
    tokens before it to look at.
    """
    batches = session.task.eval_batches(split)
    losses, positions = list[Any](), list[Any]()
    with torch.no_grad(), autocast(next(session.model.parameters()).device, "float32"):
        for index in range(batches.per_epoch):
            batch = batches.batch(0, index)
            losses.append(-session.objective.log_probabilities(batch).cpu().numpy())
            positions += map(np.arange, batch.target_lengths.tolist())
    places = np.concatenate(positions)
    counts = np.bincount(places)
    sums = np.bincount(places, np.concatenate(losses))
    starts = [0, *(1 << power for power in range(len(counts).bit_length()) if 1 << power < len(counts))]
    return {
        start + 1: float(sums[start:end].sum() / counts[start:end].sum())
        for start, end in zip(starts, [*starts[1:], len(counts)], strict=True)
    }


def mean_by_position(of_runs: Sequence[PositionLosses]) -> PositionLosses:
    """Return the mean over the runs of a model."""
    return {start: float(np.mean([losses[start] for losses in of_runs])) for start in of_runs[0]}
