"""Metrics of navigation: success, success weighted by path length, and number of moves."""

from collections.abc import Sequence

import numpy as np
import torch

from foveal.metrics.score import MetricResult, RowIndices, success_rate
from foveal.tasks.navigation.path_length import success_weighted_by_path_length


def success(arrived: Sequence[bool]) -> MetricResult:
    """Return the fraction of episodes that ended at the goal."""
    return success_rate("success", [not reached for reached in arrived], [1] * len(arrived))


def spl(arrived: Sequence[bool], shortest: Sequence[int], steps_taken: Sequence[int]) -> MetricResult:
    """Return success weighted by path length, in moves without the stop (Anderson et al. 2018)."""
    values = success_weighted_by_path_length(
        torch.tensor(arrived), torch.tensor(shortest), torch.tensor(steps_taken)
    )
    return _mean("spl", values.tolist())


def path_moves(steps_taken: Sequence[int]) -> MetricResult:
    """Return the number of moves of an episode, without the stop."""
    return _mean("moves", steps_taken, higher_is_better=False)


def _mean(name: str, numbers: Sequence[float] | Sequence[int], higher_is_better: bool = True) -> MetricResult:
    each = np.asarray(numbers, np.float64)

    def of(rows: RowIndices) -> float:
        return float(each[rows].mean())

    return MetricResult(name, of(np.arange(len(each))), each, of, higher_is_better)
