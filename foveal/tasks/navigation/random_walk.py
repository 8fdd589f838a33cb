"""The baseline of navigation: a walk that draws its moves, and sees neither the map nor the instruction."""

import torch

from foveal.core.runtime import derived_seed
from foveal.data.core.examples import Examples, RaggedArray
from foveal.tasks.navigation.grid_world import MOVES, STOP, step_poses

WALKS_PER_ROW = 20
"""Walks of each row: few of them arrive."""


def random_walks_arrive(train: Examples, held_out: Examples, longest: int, seed: int) -> list[bool]:
    """Return for `WALKS_PER_ROW` walks of each held-out row whether the walk stopped at the goal.

    A walk has `longest` moves at most. Each move is drawn at the rate at which it occurs in the paths of
    training, the stop among them.
    """
    paths = train.columns["target"]
    assert isinstance(paths, RaggedArray)
    counts = torch.bincount(torch.from_numpy(paths.values).long(), minlength=len(MOVES))
    cells, pose, goal = (
        torch.from_numpy(held_out.columns[name]).repeat_interleave(WALKS_PER_ROW, 0)
        for name in ("map", "start", "goal")
    )
    generator = torch.Generator().manual_seed(derived_seed(seed, "random walk"))
    moves = torch.multinomial(counts.double(), len(pose) * longest, replacement=True, generator=generator)
    has_stopped = torch.zeros(len(pose), dtype=torch.bool)
    for move in moves.view(longest, len(pose)):
        has_stopped |= move == STOP
        pose = step_poses(cells, pose, torch.where(has_stopped, STOP, move))
    arrived: list[bool] = (has_stopped & (pose[:, :2] == goal).all(1)).tolist()
    return arrived
