"""REINFORCE on walks: its gradient is that of the expected reward, and what each walk is compared with."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.core.split_data import SplitData
from foveal.data.text.length_limit import LengthLimit
from foveal.tasks.navigation.grid_world import FORWARD, MOVES, STOP, path_poses
from foveal.tasks.navigation.objective import (
    ROLLOUTS_PER_ROW,
    NavigationObjective,
    ReinforceNavigationObjective,
    Trajectory,
)
from tests.support.navigation_episodes import (
    CORRIDOR,
    LONGER,
    MeanColorEye,
    encode_episodes,
    episode_batch,
    move_log_probabilities,
    small_agent,
)


def expected_reward(
    objective: NavigationObjective, part: SplitData[Examples], row: int, max_length: int
) -> Tensor:
    """`E[R]` over all walks of one row: a function of the weights."""
    every = [[*moves] for moves in product(range(len(MOVES)), repeat=max_length)]
    log_p = move_log_probabilities(
        objective, collate_examples(part.examples, np.full(len(every), row)), torch.tensor(every)
    )
    columns = part.examples.columns
    cells, start, goal = (np.asarray(columns[name])[row] for name in ("map", "start", "goal"))
    total = torch.zeros(())
    for moves, chances in zip(every, log_p, strict=True):
        taken = moves.index(STOP) if STOP in moves else max_length
        if taken < max_length and set(moves[taken:]) == {STOP}:  # what is said behind a stop is not walked
            end = path_poses(cells, tuple(start.tolist()), moves)[-1]
            if end[:2] == tuple(goal.tolist()):
                total = total + chances[: taken + 1].sum().exp() * part.lengths[row] / max(
                    part.lengths[row], taken
                )
    return total


@pytest.mark.slow
def test_reinforce_has_the_gradient_of_the_expected_reward() -> None:
    """On average: of 25,000 walks of at most three moves, to two goals in one batch."""
    part, processor = encode_episodes(CORRIDOR, LONGER)
    model: Any = small_agent(processor)
    model.eye = MeanColorEye()
    nn.init.normal_(model.before.table, std=1.0)
    objective = ReinforceNavigationObjective(model.train(), LengthLimit(3))
    weights: Any = [
        model.projection.weight,
        model.before.table,
        model.encoder.stack.blocks[0].mixer.cell.weight_input,
    ]
    rewards = torch.stack([expected_reward(objective, part, row, 3) for row in range(2)])
    assert ((rewards > 0.01) & (rewards < 0.8)).all()
    exact = torch.autograd.grad(rewards.mean(), weights)
    found = []
    batch = episode_batch(part, 200)
    for _ in range(16):
        term = objective(batch, None)[0].terms["walks"]
        found.append(torch.autograd.grad(-term.sum / term.weight, weights))
    for estimates, right in zip(map(torch.stack, zip(*found, strict=True)), exact, strict=True):
        error = estimates.std(0) / math.sqrt(len(found))
        assert ((estimates.mean(0) - right).abs() < 5 * error + 1e-3 * right.abs().max()).all()
        assert right.abs().max() > 10 * error.max(), "nothing is shown by so few walks"


def test_a_walk_is_compared_with_the_others_to_its_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    part, processor = encode_episodes(CORRIDOR, LONGER)
    model, walked = small_agent(processor), []
    with torch.no_grad():
        model.projection.bias[[FORWARD, STOP]] += 2  # so that some arrive
    objective = ReinforceNavigationObjective(model.train(), LengthLimit(4))
    rollout = objective.rollout

    def seen(batch: ExampleBatch, *source_columns: Any, **named: Any) -> Trajectory:
        walked.append((batch, rollout(batch, *source_columns, **named)))
        return walked[0][1]

    monkeypatch.setattr(objective, "rollout", seen)
    torch.manual_seed(8)
    term = objective(episode_batch(part), None)[0].terms["walks"]
    again, found = walked[0]
    total = torch.zeros(())
    for goal in np.asarray(part.examples.columns["goal"]).tolist():
        rows = [row for row, other in enumerate(again.columns["goal"].tolist()) if other == goal]
        assert len(rows) == ROLLOUTS_PER_ROW
        got = {
            row: float(found.stopped[row] and found.end_position[row].tolist() == goal)
            * float(
                again.columns["shortest"][row] / max(again.columns["shortest"][row], found.steps_taken[row])
            )
            for row in rows
        }
        for row in rows:
            others = sum(got[other] for other in rows if other != row) / (ROLLOUTS_PER_ROW - 1)
            total = total - (got[row] - others) * found.log_prob[row] / ROLLOUTS_PER_ROW
    assert abs(float(total.detach())) > 0.1, "nobody arrived"
    torch.testing.assert_close(term.sum, total)
