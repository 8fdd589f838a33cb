"""Walks: REINFORCE's gradient is that of the expected reward, and both signals teach the way."""

import math
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import Config, DataConfig, ModelConfig, OptimizerConfig
from foveal.data import walks
from foveal.data.batching import ExampleBatch
from foveal.data.buckets import gather
from foveal.data.errands import an_errand
from foveal.data.grid_world import FORWARD, LEFT, MOVES, SIDE, STOP, TILE, followed, view
from foveal.data.marks import Marks
from foveal.data.room import Room
from foveal.data.rows import Row
from foveal.data.walks import Walks
from foveal.data.walks_files import walk_fields
from foveal.models.navigate import FEATURES, Walker, walker
from foveal.tasks.navigate import WALKS, NavigateTask, ReinforcedNavigateTask, Walk, arrived
from foveal.training.optim import Optimizer
from foveal.training.step import train_step

CORRIDOR = {
    "map": ["####", "#..#", "####"],
    "instruction": "one step on",
    "start": [1, 1, "east"],
    "path": "forward stop",
}


def part_of(*found: dict[str, Any]) -> tuple[Walks, walks.WalkInputs]:
    config, rows = DataConfig(tokenizer="word"), []
    for number, one in enumerate(found):
        fields = walk_fields(dict(one))
        assert not isinstance(fields, str)
        rows.append(Row(f"row {number}", fields))
    inputs = walks.make_inputs("made", rows, config)
    return walks.encode(rows, inputs, config, []), inputs


def model_of(inputs: walks.WalkInputs, width: int = 12, mixers: str = "attentive") -> Walker:
    torch.manual_seed(7)
    reader = {"kind": "text", "mixers": "gru", "layers": 1, "width": width, "embedding": 6}
    sizes = {"mixers": mixers, "layers": 1, "width": width, "attention": {"heads": 2}, "encoder": reader}
    config = ModelConfig.model_validate(sizes)
    return walker(config, Marks(inputs.source.size).vocabulary, 64, SIDE, TILE, len(MOVES))


def batch_of(part: Walks, times: int = 1) -> ExampleBatch:
    return gather(part.examples, np.arange(len(part)).repeat(times))


class Glance(nn.Module):
    """An eye that sees the mean colour of some pixels, in all squares alike."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Linear(3, FEATURES)

    def forward(self, pictures: Tensor) -> Tensor:
        seen: Tensor = self.seen(pictures[:, :, ::4, ::4].float().mean((2, 3)) / 127.5 - 1)
        return seen[:, None].expand(-1, SIDE**2, -1)


def log_chances(task: NavigateTask, batch: ExampleBatch, moves: Tensor) -> Tensor:
    """`log p` of each of the moves (B, T), all poses being known beforehand."""
    cells, starts = batch.columns["map"], batch.columns["start"]
    poses = [
        followed(one.to(torch.int8).numpy(), tuple(start), path)[:-1]
        for one, start, path in zip(cells, starts.tolist(), moves.tolist(), strict=True)
    ]
    before = F.pad(moves[:, :-1], (1, 0), value=len(MOVES))
    memory = task.read(batch)
    logits, _ = task.model(view(cells, torch.tensor(poses)), before, task.model.start(memory))
    return logits.log_softmax(2).gather(2, moves[:, :, None])[:, :, 0]


def expected_reward(task: NavigateTask, part: Walks, longest: int) -> Tensor:
    """`E[R]` over all walks of one row: a function of the weights."""
    every = [[*moves] for moves in product(range(len(MOVES)), repeat=longest)]
    log_p = log_chances(task, batch_of(part, len(every)), torch.tensor(every))
    columns = part.examples.columns
    cells, start, goal = (np.asarray(columns[name])[0] for name in ("map", "start", "goal"))
    total = torch.zeros(())
    for moves, chances in zip(every, log_p, strict=True):
        taken = moves.index(STOP) if STOP in moves else longest
        if taken < longest and set(moves[taken:]) == {STOP}:  # what is said behind a stop is not walked
            end = followed(cells, tuple(start.tolist()), moves)[-1]
            if end[:2] == tuple(goal.tolist()):
                total = total + chances[: taken + 1].sum().exp() * part.lengths[0] / max(
                    part.lengths[0], taken
                )
    return total


def test_reinforce_has_the_gradient_of_the_expected_reward() -> None:
    """On average: of a hundred thousand walks of at most three moves."""
    part, inputs = part_of(CORRIDOR)
    model = model_of(inputs)
    model.eye = Glance()  # type: ignore[assignment]
    nn.init.normal_(model.before.weight, std=1.0)
    task = ReinforcedNavigateTask(model.train(), Room(3))
    weights = [
        model.projection.weight,
        model.before.weight,
        model.encoder.stack.blocks[0].mixer.cell.weight_input,
    ]
    reward = expected_reward(task, part, 3)
    assert 0.02 < float(reward.detach()) < 0.8
    exact = torch.autograd.grad(reward, weights)
    found = []
    batch = batch_of(part, 1500)
    for _ in range(16):
        term = task(batch, None)[0].terms["walks"]
        found.append(torch.autograd.grad(-term.sum / term.weight, weights))
    for estimates, right in zip(map(torch.stack, zip(*found, strict=True)), exact, strict=True):
        error = estimates.std(0) / math.sqrt(len(found))
        assert ((estimates.mean(0) - right).abs() < 5 * error + 1e-3 * right.abs().max()).all()
        assert right.abs().max() > 10 * error.max(), "nothing is shown by so few walks"


@pytest.mark.parametrize("mixers", ["attentive", "attention+cross"])
def test_a_walk_is_worth_what_its_moves_are(mixers: str) -> None:
    """Step by step, rows being left behind, as all at once; each row as if it were alone."""
    chance = Random(0)
    part, inputs = part_of(*(an_errand(chance) for _ in range(12)))
    task = NavigateTask(model_of(inputs, mixers=mixers).train(), Room(9))
    batch = batch_of(part)
    torch.manual_seed(1)
    walk = task.walk(batch, task.read(batch), draw=True)
    ends = (walk.taken + walk.stopped).tolist()
    assert len({*ends}) > 2, "all walks are alike"
    assert [len(moves) for moves in walk.rows()] == ends
    columns = part.examples.columns
    for row, moves in enumerate(walk.rows()):
        cells, start = (np.asarray(columns[name])[row] for name in ("map", "start"))
        assert followed(cells, tuple(start.tolist()), moves)[-1][:2] == tuple(walk.place[row].tolist())
        alone = gather(part.examples, np.array([row]))
        chances = log_chances(task, alone, torch.tensor([moves]))
        torch.testing.assert_close(chances.sum(), walk.log_chance[row], rtol=1e-4, atol=1e-4)
    task.model.eval()
    together = task.predict(batch)
    for row, moves in enumerate(together.rows()):
        assert task.predict(gather(part.examples, np.array([row]))).rows() == [moves]


def test_who_stops_elsewhere_or_not_at_all_has_not_arrived() -> None:
    part, _ = part_of(CORRIDOR)
    batch, goal = batch_of(part, 3), torch.as_tensor(np.asarray(part.examples.columns["goal"]))
    moves = torch.full((3, 2), FORWARD)
    places = torch.cat([goal, goal, goal + 1])
    walk = Walk(moves, torch.ones(3), places, torch.tensor([True, False, True]), torch.zeros(3))
    assert arrived(batch, walk).tolist() == [True, False, False]


def test_imitation_fits_a_few_errands() -> None:
    chance = Random(2)
    part, inputs = part_of(*(an_errand(chance) for _ in range(6)))
    task = NavigateTask(model_of(inputs, 32), inputs.room)
    optimizer, batch = Optimizer(task.model, OptimizerConfig(name="adam")), batch_of(part)
    for step in range(70):
        done, _ = train_step(task.model, task, optimizer, [batch], [None], rate=1e-2, seed=(0, step))
        assert done.culprit is None
    task.model.eval()
    result, _ = task(batch, None)
    assert result.metrics["loss"][0] / result.metrics["loss"][1] < 0.1
    assert result.metrics["success"] == result.metrics["spl"] == (6.0, 6.0)
    assert [walks.spelled(moves) for moves in task.predict(batch).rows()] == part.paths


def test_reinforce_alone_finds_the_way() -> None:
    part, inputs = part_of(CORRIDOR)
    model = model_of(inputs)
    model.eye = Glance()  # type: ignore[assignment]
    task, optimizer = ReinforcedNavigateTask(model, Room(4)), Optimizer(model, OptimizerConfig(name="adam"))
    batch = batch_of(part, 16)
    first = task(batch, None)[0].metrics
    assert first["reward"][1] == 16 * WALKS
    assert first["reward"][0] / first["reward"][1] < 0.5
    for step in range(60):
        train_step(model, task, optimizer, [batch], [None], rate=1e-2, seed=(0, step))
    model.eval()
    metrics = task(batch, None)[0].metrics
    assert metrics["success"] == metrics["reward"] == (16.0, 16.0)
    assert metrics["loss"] == (0.0, 16.0)


def test_reinforce_arrives_where_short_imitation_did_not() -> None:
    chance = Random(5)
    part, inputs = part_of(*(an_errand(chance) for _ in range(6)))
    model, arriving = model_of(inputs, 32), []
    for make, steps, rate, times in ((NavigateTask, 18, 1e-2, 1), (ReinforcedNavigateTask, 24, 3e-3, 2)):
        task, optimizer = make(model, inputs.room), Optimizer(model, OptimizerConfig(name="adam"))
        for step in range(steps):
            train_step(model, task, optimizer, [batch_of(part, times)], [None], rate=rate, seed=(0, step))
        model.eval()
        arriving.append(task(batch_of(part), None)[0].metrics["success"][0])
    assert arriving[0] < arriving[1] <= 6


def test_a_broken_weight_is_refused_and_changes_nothing() -> None:
    part, inputs = part_of(CORRIDOR)
    for make in (NavigateTask, ReinforcedNavigateTask):
        model = model_of(inputs)
        with torch.no_grad():
            model.before.weight[LEFT] = torch.nan
            model.before.weight[len(MOVES)] = torch.nan
        before = [weight.detach().clone() for weight in model.parameters()]
        optimizer = Optimizer(model, OptimizerConfig())
        task = make(model, Room(3))
        done, _ = train_step(model, task, optimizer, [batch_of(part, 2)], [None], rate=1e-2, seed=(0, 0))
        assert done.culprit is not None
        for was, weight in zip(before, model.parameters(), strict=True):
            torch.testing.assert_close(was, weight.detach(), rtol=0, atol=0, equal_nan=True)


def test_settings_that_do_not_fit_are_told() -> None:
    fits = {"task": {"name": "navigate"}, "model": {"mixers": "attentive", "encoder": {"kind": "text"}}}
    Config.model_validate(fits)
    for change, why in (
        ({"task": {"name": "language", "signal": "reinforce"}}, "language walks nowhere"),
        ({"model": fits["model"] | {"attentive": {"look": "hard"}}}, r"attentive\.look=soft"),
        ({"model": fits["model"] | {"feedforward": "experts"}}, "balances no experts"),
        ({"model": {"mixers": "attentive"}}, "needs an encoder of what it reads"),
    ):
        config = fits | change if "task" not in change else change
        with pytest.raises(ValueError, match=why):
            Config.model_validate(config)
