"""The loss of language models by position in the context: who uses what lies far back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from foveal.core.runtime import autocast
from foveal.tasks.session import Session

PositionLosses = dict[int, float]
"""The mean loss of the targets from one position to the next key, by the first position (from 1)."""


def losses_by_position(session: Session, split: Any) -> PositionLosses:
    """Return the mean loss of a language model at positions 1, 2, 3 to 4, 5 to 8 and so on in windows of its
    context. Each window begins without history, so position t has t - 1 tokens before it to look at.
    """
    batches = session.task.eval_batches(split)
    context = session.config.data.context_length
    sums, counts = np.zeros(context), np.zeros(context)
    with torch.no_grad(), autocast(next(session.model.parameters()).device, "float32"):
        for index in range(batches.per_epoch):
            batch = batches.batch(0, index)
            losses = -session.objective.log_probabilities(batch).view(batch.targets.shape).cpu().numpy()
            size = losses.shape[1]
            lengths = np.full(len(losses), size) if batch.lengths is None else batch.lengths.numpy()
            real = np.arange(size) < lengths[:, None]
            sums[:size] += np.where(real, losses, 0).sum(0)
            counts[:size] += real.sum(0)
    starts = [0, *(1 << power for power in range(context.bit_length()) if 1 << power < context)]
    return {
        start + 1: float(sums[start:end].sum() / counts[start:end].sum())
        for start, end in zip(starts, [*starts[1:], context], strict=True)
        if counts[start:end].sum()
    }


def mean_by_position(of_runs: Sequence[PositionLosses]) -> PositionLosses:
    """Return the mean over the runs of a model."""
    return {start: float(np.mean([losses[start] for losses in of_runs])) for start in of_runs[0]}
