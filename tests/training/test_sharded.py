"""Ranks that share the weights (`--fsdp`) train as one process does, and hold a part of everything."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import OptimizerConfig, TrainingConfig
from foveal.core.errors import UserError
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.stored_tensor import in_one_piece
from foveal.distributed.sharded import ShardedRanks, sharded_blocks
from foveal.distributed.world import ONE_PROCESS, World
from foveal.ops.jit.launch import Kernel
from foveal.training.averaging import make_average
from foveal.training.optim import Optimizer
from foveal.training.placed_weights import load_placed_weights, own_state_dict, whole_weights
from foveal.training.slots import Slots
from foveal.training.step import train_step
from tests.support.ranks import run_ranks
from tests.support.saved_files import whole_values
from tests.support.short_trainings import (
    ALL_KINDS,
    NOT_CUT,
    check_equal_launches,
    check_equal_training,
    rank_steps,
)
from tests.support.untrained_runs import KINDS

OFTEN = ("stream-lstm", "translation")
"""Kinds that are compared at every change: a carry, and blocks that read a memory."""
OPTIMIZERS = ("sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sharded(world: World) -> ShardedRanks:
    return ShardedRanks(world.rank, world.size)


def check_equal(kind: str, slots: int, ranks: int, folder: Path, *more: Any) -> None:
    check_equal_training(kind, slots, ranks, ShardedRanks, folder, *more)


@pytest.mark.parametrize(
    "kind",
    [
        *OFTEN,
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in sorted(ALL_KINDS.keys() - NOT_CUT - {*OFTEN})
        ),
    ],
)
def test_a_shared_model_trains_as_a_whole_one(kind: str, folder: Path) -> None:
    check_equal(kind, 2, 2, folder)


@pytest.mark.slow
def test_a_slot_without_rows(folder: Path) -> None:
    """A rank that has nothing to do computes with the others, and adds nothing."""
    check_equal("translation", 64, 2, folder)


@pytest.mark.slow
def test_a_rank_with_several_slots(folder: Path) -> None:
    """Their gradients are added up one after another, over three ranks that hold unequal parts."""
    check_equal("language-model", 6, 3, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer(name: str, folder: Path) -> None:
    """Muon needs whole matrices, all others update number by number."""
    check_equal("language-model", 2, 2, folder, "float32", name)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_equal_bits_from_launch_to_launch(precision: str, folder: Path) -> None:
    check_equal_launches("experts", 4, 4, ShardedRanks, folder, precision)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translation", "masked-lm", "experts"])
def test_ranks_of_processes_that_split_the_layers(kind: str, folder: Path) -> None:
    check_equal_training(kind, 2, 4, partial(ShardedRanks, tp=2), folder)


class Uneven(nn.Module):
    """Rows that 3 ranks can't share equally, a weight that is used twice, and one without an axis."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.table, self.tied = nn.Linear(4, 7), nn.Linear(4, 7)
        self.tied.weight = self.table.weight
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.register_buffer("count", torch.arange(3))


def build() -> Uneven:
    torch.manual_seed(0)
    return Uneven()


def parts_of(world: World) -> dict[str, Any]:
    model = build()
    ranks = sharded(world)
    placement = ranks.place(model, lambda: None)
    own = own_state_dict(model, placement)
    state: dict[str, Any] = {
        "whole": {name: value.clone() for name, value in whole_weights(model, placement)},
        "own": {name: own[name].shape[:1].numel() for name in own},
    }
    table = own["table.weight"]
    history = torch.stack([table, 2 * table])
    state["history"] = placement.whole(history, table)
    state["again"] = placement.own(state["history"], table).equal(history)
    doubled = {name: 2 * value for name, value in state["whole"].items()}
    load_placed_weights(model, placement, in_one_piece(doubled), "x")
    state["loaded"] = dict(whole_weights(model, placement))
    try:
        first = {name: value.flatten()[:1] for name, value in doubled.items()}
        load_placed_weights(model, placement, in_one_piece(first), "x")
    except UserError as error:
        state["refused"] = str(error)
    kernel = Kernel("short_attention", "forward")
    state["usable"] = kernel.usable(torch.ones(3)), kernel.usable(model.table.weight)
    state["counted"] = {name: placement.counts(value) for name, value in own.items()}
    return state


def test_parts_are_cut_and_joined() -> None:
    whole = {name: value for name, value in build().state_dict().items() if name != "tied.weight"}
    ranks = run_ranks(3, parts_of)
    for state in ranks:
        assert {name: value.tolist() for name, value in state["whole"].items()} == {
            name: value.tolist() for name, value in whole.items()
        }
        table = whole["table.weight"]
        assert torch.equal(state["history"], torch.stack([table, 2 * table]))
        assert state["again"]
        assert all(torch.equal(state["loaded"][name], 2 * value) for name, value in whole.items())
        assert "table.weight is float32[1], not float32[7, 4]" in state["refused"]
        assert state["usable"] == (True, False), (
            "a kernel would read the memory of a part as that of a whole weight"
        )
    assert [state["own"]["table.weight"] for state in ranks] == [3, 3, 1]
    assert [state["own"]["blocks.0.weight"] for state in ranks] == [2, 2, 0]
    assert [state["counted"]["scale"] for state in ranks] == [True, False, False], "once in the norm"
    assert all(state["counted"]["table.weight"] for state in ranks)


def test_blocks_are_the_elements_of_the_outer_lists() -> None:
    model = nn.Sequential(
        build(), nn.ModuleList([nn.ReLU(), nn.Sequential(nn.ModuleList([nn.Linear(1, 1)]))])
    )
    names = {module: name for name, module in model.named_modules()}
    assert [names[block] for block in sharded_blocks(model)] == ["0.blocks.0", "0.blocks.1", "1.1"]


def average_of(world: World, kind: str) -> dict[str, Tensor]:
    """Return the state of an average of two weights, which was saved and loaded, and the averaged weights."""
    model = build()
    placement = (
        sharded(world).place(model, lambda: None) if world.size > 1 else world.place(model, lambda: None)
    )
    config = TrainingConfig(**{kind: 2 if kind == "average_checkpoints" else 0.5})
    made = make_average(model, config, placement)
    again = make_average(model, config, placement)
    assert made is not None
    assert again is not None
    for step, factor in ((1, 3.0), (2, 5.0)):
        for value in own_state_dict(model, placement).values():
            value.mul_(int(factor))
        made.update(step)
        made.on_evaluation(step)
    again.load(in_one_piece(whole_values(made.state(), placement)), "x")
    with again.applied():
        weights = dict(whole_weights(model, placement))
        applied = {f"applied.{name}": value.clone() for name, value in weights.items()}
    return whole_values(again.state(), placement) | applied


@pytest.mark.parametrize("kind", ["average_checkpoints", pytest.param("ema_decay", marks=pytest.mark.slow)])
def test_averages(kind: str) -> None:
    torch.set_num_threads(1)
    whole = average_of(ONE_PROCESS, kind)
    for state in run_ranks(3, average_of, kind):
        assert state.keys() == whole.keys()
        for name, value in whole.items():
            assert torch.equal(state[name], value), name


def optimizer_state(world: World) -> dict[str, Tensor]:
    """Return the state after a step, which was saved and loaded."""
    model = build()
    placement = (
        sharded(world).place(model, lambda: None) if world.size > 1 else world.place(model, lambda: None)
    )
    config = OptimizerConfig(name="adam")
    first, second = (Optimizer(model, config, placement) for _ in range(2))
    for weight in first.trainable.values():
        weight.grad = torch.ones_like(weight)
        if world.rank == world.size - 1 and weight.dim():
            weight.grad.view(-1)[-1] = 7
    norm, largest = first.gradient_stats()
    first.step(0.1, norm)
    saved = whole_values(first.state(), placement)
    order = sorted(saved, reverse=world.rank % 2 == 0)  # each process reads a file in an order of its own
    second.load_state(in_one_piece({key: saved[key] for key in order}), "x")
    whole = whole_values(second.state(), placement)
    return whole | {"norm": torch.tensor(norm), "largest": torch.tensor(largest)}


def test_the_state_of_an_optimizer_is_that_of_whole_weights() -> None:
    torch.set_num_threads(1)
    with torch.no_grad():
        whole = optimizer_state(ONE_PROCESS)
    assert float(whole["largest"]) == 7
    for state in run_ranks(2, optimizer_state):
        assert state.keys() == whole.keys()
        for name, value in whole.items():
            assert torch.allclose(state[name], value), name


class SumOfOutputs:
    """An objective of the model above: the sum of what it computes of the rank's number."""

    def __init__(self, model: Uneven):
        self.model, self.fails = model, False

    def __call__(self, batch: Any, carry: Any) -> Any:
        x = torch.full((1, 4), float(batch))
        x = self.model.blocks[0](x).tanh()
        if self.fails:
            raise UserError("between two blocks")
        x = self.model.table(self.model.blocks[1](x).tanh()) + self.model.tied(x)
        return ObjectiveOutput({"loss": Term((self.model.scale * x).sum(), 1.0)}), None


def computed(world: World) -> dict[str, Any]:
    """Return the gradients of all ranks' numbers; also after a failure, and the output of changed weights."""
    model = build()
    placement = sharded(world).place(model, lambda: None)
    parts = [*own_state_dict(model, placement).values()]
    objective, optimizer = SumOfOutputs(model), Optimizer(model, OptimizerConfig(), placement)
    compute = placement.computing(objective)
    objective.fails = True
    with pytest.raises(UserError, match="between two blocks"):
        compute(world.rank, None)
    objective.fails = False
    compute(world.rank, None)[0].terms["loss"].sum.backward()
    names = list(optimizer.trainable)
    gradients = {
        name: placement.whole(gradient, optimizer.trainable[name])
        for name, gradient in zip(names, optimizer.take_gradients(), strict=True)
        if gradient is not None
    }
    compute(world.rank, None)  # without a backward pass, as where a step is not finite
    for own in parts:
        own.mul_(2)
    outputs = []
    with torch.no_grad():
        for _ in range(2):
            outputs.append(float(compute(5, None)[0].terms["loss"].sum))
            for own in parts:
                own.mul_(2)
    return {"gradients": gradients, "outputs": outputs}


def test_gradients_are_the_sums_over_the_ranks() -> None:
    """Also those of a weight without an axis, which each rank holds; and after a failure within the model."""
    torch.set_num_threads(1)
    model = build()
    for rank in range(3):
        SumOfOutputs(model)(rank, None)[0].terms["loss"].sum.backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    outputs = []
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)
        for _ in range(2):
            outputs.append(float(SumOfOutputs(model)(5, None)[0].terms["loss"].sum))
            for weight in model.parameters():
                weight.mul_(2)
    for state in run_ranks(3, computed):
        assert state["gradients"].keys() == gradients.keys()
        for name, gradient in gradients.items():
            assert gradient is not None
            assert torch.allclose(state["gradients"][name], gradient, atol=1e-6), name
        assert state["outputs"] == pytest.approx(outputs, rel=1e-5), "weights that changed are gathered again"


def refusal(world: World, folder: Path, kind: str, slots: int) -> str:
    try:
        rank_steps(world, folder, ShardedRanks, kind, slots, torch.float32)
    except UserError as error:
        return str(error)
    return ""


def test_what_can_not_be_shared_is_refused_by_all_ranks(folder: Path) -> None:
    assert set(run_ranks(2, refusal, folder / "norm", "batch-norm", 4)) == {
        "--fsdp: batch norm or the choice of rows needs a rank for each slot: start --ranks 4, or leave out "
        "--fsdp"
    }


def nonfinite_step(world: World, folder: Path) -> tuple[str | None, bool]:
    """Return where a number that is not finite appears, and whether the weights stay."""
    path = folder / str(world.rank)
    path.mkdir()
    os.chdir(path)
    run = KINDS["language-model"]()
    ranks = sharded(world)
    placement = ranks.place(run.model, lambda: None)
    batches = run.task.train_batches(run.prepared.train)
    inner = run.task.objective()

    class Poisoned:
        """The loss of the second slot has an infinite gradient."""

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def __call__(self, batch: Any, carry: Any) -> Any:
            output, after = inner(batch, carry)
            if world.rank == 0:
                return output, after
            terms = {
                name: Term((term.sum - term.sum.detach()).sqrt() + term.sum.detach(), term.weight)
                for name, term in output.terms.items()
            }
            return ObjectiveOutput(terms, output.metrics), after

    optimizer = Optimizer(run.model, run.config.optimizer, placement)
    before = dict(whole_weights(run.model, placement))
    result, _ = train_step(
        run.model,
        placement.computing(Poisoned()),
        optimizer,
        [batches.batch(0, 0)],
        [None],
        lr=0.1,
        seed=(0,),
        slots=Slots(2, ranks),
    )
    after = dict(whole_weights(run.model, placement))
    return result.first_nonfinite, all(torch.equal(before[name], after[name]) for name in before)


def test_a_gradient_that_is_not_finite_is_named(folder: Path) -> None:
    for name, unchanged in run_ranks(2, nonfinite_step, folder):
        assert name is not None
        assert name.startswith("gradient of ")
        assert unchanged
