"""Scores of walks: who arrived, by how long a way, in how many moves."""

from collections.abc import Sequence

import numpy as np
import torch

from foveal.metrics.score import Rows, Score, success_rate
from foveal.tasks.navigation.path_length import weighted_success


def success(arrived: Sequence[bool]) -> Score:
    """The share of walks that stopped at their goal."""
    return success_rate("success", [not one for one in arrived], [1] * len(arrived))


def spl(arrived: Sequence[bool], shortest: Sequence[int], taken: Sequence[int]) -> Score:
    """Success weighted by path length, in moves, the stop aside (Anderson et al. 2018)."""
    each = weighted_success(torch.tensor(arrived), torch.tensor(shortest), torch.tensor(taken))
    return _mean("spl", each.tolist())


def path_moves(taken: Sequence[int]) -> Score:
    """Moves of a walk, its stop aside."""
    return _mean("moves", taken, higher_is_better=False)


def _mean(name: str, numbers: Sequence[float] | Sequence[int], higher_is_better: bool = True) -> Score:
    each = np.asarray(numbers, np.float64)

    def of(rows: Rows) -> float:
        return float(each[rows].mean())

    return Score(name, of(np.arange(len(each))), each, of, higher_is_better)
