"""Walks: what they are worth, and both signals teach the way."""

from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from foveal.config import OptimizerConfig
from foveal.data.core.length_buckets import collate_examples
from foveal.data.text.length_limit import LengthLimit
from foveal.tasks.config import from_tables
from foveal.tasks.navigation.generated_episodes import random_episode
from foveal.tasks.navigation.grid_world import FORWARD, LEFT, MOVES, moves_to_text, path_poses
from foveal.tasks.navigation.objective import (
    ROLLOUTS_PER_ROW,
    NavigationObjective,
    ReinforceNavigationObjective,
    Trajectory,
    reached_goal,
)
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.support.navigation_episodes import (
    CORRIDOR,
    MeanColorEye,
    encode_episodes,
    episode_batch,
    move_log_probabilities,
    small_agent,
)


@pytest.mark.parametrize("mixers", ["attention-rnn", "attention+cross"])
def test_a_walk_is_worth_what_its_moves_are(mixers: str) -> None:
    """Step by step, rows being left behind, as all at once; each row as if it were alone."""
    chance = Random(0)
    part, processor = encode_episodes(*(random_episode(chance) for _ in range(12)))
    objective = NavigationObjective(small_agent(processor, mixers=mixers).train(), LengthLimit(9))
    batch = episode_batch(part)
    torch.manual_seed(1)
    walk = objective.rollout(batch, objective.encode(batch), draw=True)
    ends = (walk.steps_taken + walk.stopped).tolist()
    assert len({*ends}) > 2, "all walks are alike"
    assert [len(moves) for moves in walk.rows()] == ends
    columns = part.examples.columns
    for row, moves in enumerate(walk.rows()):
        cells, start = (np.asarray(columns[name])[row] for name in ("map", "start"))
        assert path_poses(cells, tuple(start.tolist()), moves)[-1][:2] == tuple(
            walk.end_position[row].tolist()
        )
        alone = collate_examples(part.examples, np.array([row]))
        chances = move_log_probabilities(objective, alone, torch.tensor([moves]))
        torch.testing.assert_close(chances.sum(), walk.log_prob[row], rtol=1e-4, atol=1e-4)
    objective.model.eval()
    together = objective.predict_batch(batch)
    for row, moves in enumerate(together.rows()):
        assert objective.predict_batch(collate_examples(part.examples, np.array([row]))).rows() == [moves]


def test_who_stops_elsewhere_or_not_at_all_has_not_arrived() -> None:
    part, _ = encode_episodes(CORRIDOR)
    batch, goal = episode_batch(part, 3), torch.as_tensor(np.asarray(part.examples.columns["goal"]))
    moves = torch.full((3, 2), FORWARD)
    places = torch.cat([goal, goal, goal + 1])
    walk = Trajectory(moves, torch.ones(3), places, torch.tensor([True, False, True]), torch.zeros(3))
    assert reached_goal(batch, walk).tolist() == [True, False, False]


@pytest.mark.slow
def test_imitation_fits_a_few_errands() -> None:
    chance = Random(2)
    part, processor = encode_episodes(*(random_episode(chance) for _ in range(6)))
    objective = NavigationObjective(small_agent(processor, 32), processor.target.length_limit)
    optimizer, batch = Optimizer(objective.model, OptimizerConfig(name="adam")), episode_batch(part)
    for step in range(70):
        done, _ = train_step(objective.model, objective, optimizer, [batch], [None], lr=1e-2, seed=(0, step))
        assert done.first_nonfinite is None
    objective.model.eval()
    result, _ = objective(batch, None)
    assert result.metrics["loss"][0] / result.metrics["loss"][1] < 0.1
    assert result.metrics["success"] == result.metrics["spl"] == (6.0, 6.0)
    assert [moves_to_text(moves) for moves in objective.predict_batch(batch).rows()] == part.references


@pytest.mark.slow
def test_reinforce_alone_finds_the_way() -> None:
    part, processor = encode_episodes(CORRIDOR)
    model = small_agent(processor)
    model.eye = MeanColorEye()  # type: ignore[assignment]
    objective, optimizer = (
        ReinforceNavigationObjective(model, LengthLimit(4)),
        Optimizer(model, OptimizerConfig(name="adam")),
    )
    batch = episode_batch(part, 16)
    first = objective(batch, None)[0].metrics
    assert first["reward"][1] == 16 * ROLLOUTS_PER_ROW
    assert first["reward"][0] / first["reward"][1] < 0.5
    for step in range(60):
        train_step(model, objective, optimizer, [batch], [None], lr=1e-2, seed=(0, step))
    model.eval()
    metrics = objective(batch, None)[0].metrics
    assert metrics["success"] == metrics["reward"] == (16.0, 16.0)
    assert metrics["loss"] == (0.0, 16.0)


@pytest.mark.slow
def test_reinforce_arrives_where_short_imitation_did_not() -> None:
    chance = Random(5)
    part, processor = encode_episodes(*(random_episode(chance) for _ in range(6)))
    model, arriving = small_agent(processor, 32), []
    for make, steps, rate, times in (
        (NavigationObjective, 18, 1e-2, 1),
        (ReinforceNavigationObjective, 24, 3e-3, 2),
    ):
        objective, optimizer = (
            make(model, processor.target.length_limit),
            Optimizer(model, OptimizerConfig(name="adam")),
        )
        for step in range(steps):
            train_step(
                model, objective, optimizer, [episode_batch(part, times)], [None], lr=rate, seed=(0, step)
            )
        model.eval()
        arriving.append(objective(episode_batch(part), None)[0].metrics["success"][0])
    assert arriving[0] < arriving[1] <= 6


def test_a_broken_weight_is_refused_and_changes_nothing() -> None:
    part, processor = encode_episodes(CORRIDOR)
    for make in (NavigationObjective, ReinforceNavigationObjective):
        model = small_agent(processor)
        with torch.no_grad():
            model.before.table[LEFT] = torch.nan
            model.before.table[len(MOVES)] = torch.nan
        before = [weight.detach().clone() for weight in model.parameters()]
        optimizer = Optimizer(model, OptimizerConfig())
        objective = make(model, LengthLimit(3))
        done, _ = train_step(
            model, objective, optimizer, [episode_batch(part, 2)], [None], lr=1e-2, seed=(0, 0)
        )
        assert done.first_nonfinite is not None
        for was, weight in zip(before, model.parameters(), strict=True):
            torch.testing.assert_close(was, weight.detach(), rtol=0, atol=0, equal_nan=True)


def test_settings_that_do_not_fit_are_told() -> None:
    fits: dict[str, dict[str, Any]] = {
        "task": {"name": "navigation"},
        "model": {"mixers": "attention-rnn", "encoder": {"kind": "text"}},
    }
    from_tables(fits)
    for change, why in (
        ({"task": {"name": "language-model", "supervision": "reinforce"}}, "unknown key 'task.supervision'"),
        ({"model": fits["model"] | {"attention_rnn": {"hard": True}}}, r"attention_rnn\.hard=false"),
        ({"model": fits["model"] | {"feedforward": "moe"}}, "balances no experts"),
        ({"model": {"mixers": "attention-rnn"}}, "needs an encoder of what it reads"),
    ):
        config = fits | change if "task" not in change else change
        with pytest.raises(ValueError, match=why):
            from_tables(config)
