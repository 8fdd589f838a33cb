"""Processes that are stages of a model (`--pp`) train as one process does, each with its blocks."""

from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from foveal.config import OptimizerConfig
from foveal.core.errors import UserError
from foveal.core.result import ObjectiveOutput, Term
from foveal.distributed.pipeline.cut import cut_into_stages, measure_blocks, weights_of_one_block
from foveal.distributed.pipeline.ranks import PipelineRanks
from foveal.distributed.world import World
from foveal.training.optim import Optimizer
from foveal.training.placed_weights import own_state_dict
from foveal.training.slots import Slots
from foveal.training.step import train_step
from tests.support.ranks import run_ranks
from tests.support.short_trainings import DEEP_KINDS, check_equal_launches, check_equal_training

OFTEN = ("deep-translation",)
"""A kind that is compared at every change: blocks that read a memory."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    return tmp_path


@pytest.mark.parametrize(
    "kind",
    [
        *OFTEN,
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in sorted(DEEP_KINDS.keys() - {*OFTEN})),
    ],
)
def test_stages_train_as_a_whole_model(kind: str, folder: Path) -> None:
    check_equal_training(kind, 4, 2, partial(PipelineRanks, pp=2), folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stages"), [("deep-experts", 2), ("deep-lstm", 2), ("deep-tied", 2), ("deep-translation", 3)]
)
def test_interleaved_stages(kind: str, stages: int, folder: Path) -> None:
    check_equal_training(kind, 4, 2, partial(PipelineRanks, pp=2, virtual_stages=stages), folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["deep-attention", "deep-gru", "deep-translation"])
@pytest.mark.parametrize(
    "mesh",
    [{"pp": 4}, {"pp": 2}, {"pp": 2, "tp": 2}],
    ids=["four stages", "two ranks of two stages", "stages of split layers"],
)
def test_four_processes(kind: str, mesh: dict[str, int], folder: Path) -> None:
    if kind == "deep-gru" and "tp" in mesh:
        kind = "deep-tied"
    check_equal_training(kind, 4, 4, partial(PipelineRanks, **mesh), folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["muon", "adagrad"])
def test_optimizers(name: str, folder: Path) -> None:
    check_equal_training("deep-tied", 2, 2, partial(PipelineRanks, pp=2), folder, "float32", name)


@pytest.mark.slow
def test_with_activation_checkpointing(folder: Path) -> None:
    more = "float32", "", True
    check_equal_training("deep-translation", 4, 2, partial(PipelineRanks, pp=2), folder, *more)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_equal_bits_from_launch_to_launch(precision: str, folder: Path) -> None:
    check_equal_launches("deep-experts", 4, 2, partial(PipelineRanks, pp=2), folder, precision)


@pytest.mark.parametrize("costs", [[5, 1, 1, 1, 1, 6], [1, 1, 1, 1], [9, 1, 1, 1, 1, 1, 1], [0, 0, 3]])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_stages_of_nearly_equal_cost(costs: list[int], stages: int) -> None:
    cut = cut_into_stages(costs, stages)
    assert [number for own in cut for number in own] == [*range(len(costs))]
    assert all(cut)
    bounds = [(0, *inner, len(costs)) for inner in combinations(range(1, len(costs)), stages - 1)]
    best = min(max(sum(costs[a:b]) for a, b in pairwise(each)) for each in bounds)
    assert max(sum(costs[number] for number in own) for own in cut) == best


def test_fewer_blocks_than_stages() -> None:
    with pytest.raises(ValueError, match="2 blocks can't be cut into 3 stages"):
        cut_into_stages([1, 1], 3)


class _Block(nn.Module):
    """A block as the stages see it."""

    def __init__(self, d_in: int, d_out: int, shared: nn.Parameter):
        super().__init__()
        self.linear, self.shared = nn.Linear(d_in, d_out), shared
        self.register_buffer("offset", torch.zeros(3))

    def init_state(self, *arguments: Any) -> None:
        """Return no state."""

    def forward(self, x: torch.Tensor, state: Any = None, *, lengths: Any = None) -> Any:
        return self.linear(x) * self.shared, None, {}


class _Stack(nn.Module):
    shapes: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        shared = nn.Parameter(torch.ones(()))
        self.blocks = nn.ModuleList([_Block(4, 8, shared), _Block(8, 2, shared)])
        self.after = nn.Linear(2, 5)

    def init_state(self, *arguments: Any) -> None:
        """Return no state."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)[0]
        after: torch.Tensor = self.after(x)
        return after


def test_costs_of_blocks() -> None:
    """An operation is a product or a sum; what comes after the last block counts there."""
    model = _Stack()
    costs = measure_blocks(model, lambda **paths: model(torch.zeros(1, 3, 4)))
    assert [(cost.operations, cost.width, cost.ends_stack) for cost in costs] == [
        (2 * 3 * 4 * 8, 8, False),
        (2 * 3 * (8 * 2 + 2 * 5), 2, True),
    ]
    assert [cost.block for cost in costs] == [*model.blocks]


def test_weights_of_a_single_block() -> None:
    model = _Stack()
    numbers = dict(weights_of_one_block(model, [*model.blocks]))
    assert numbers == {
        f"blocks.{number}.{name}": number
        for number in (0, 1)
        for name in ("linear.weight", "linear.bias", "offset")
    }


def test_a_block_that_is_used_twice() -> None:
    model = _Stack()
    model.blocks[1] = model.blocks[0]
    model.blocks[0].linear = nn.Linear(4, 4)
    with pytest.raises(UserError, match="several times"):
        measure_blocks(model, lambda **paths: model.blocks[0](model.blocks[1](torch.zeros(1, 3, 4))[0]))


def place(world: World) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]], int]:
    """Return the shapes of own parts and weights, and the bytes of the weights."""
    model = _Stack()
    placement = PipelineRanks(world.rank, world.size, 2).place(
        model, lambda **paths: model(torch.zeros(1, 3, 4))
    )
    own = {name: tuple(part.shape) for name, part in own_state_dict(model, placement).items()}
    storages = {
        weight.untyped_storage().data_ptr(): weight.untyped_storage() for weight in model.parameters()
    }
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    return own, shapes, sum(storage.nbytes() for storage in storages.values())


def test_a_process_holds_the_weights_of_its_blocks() -> None:
    model = _Stack()
    whole = {name: tuple(value.shape) for name, value in model.state_dict().items() if "1.shared" not in name}
    first, second = run_ranks(2, place)
    for number, (own, shapes, size) in enumerate((first, second)):
        assert shapes == {name: tuple(weight.shape) for name, weight in model.named_parameters()}
        away = f"blocks.{1 - number}."
        assert own == {
            name: (0, *shape[1:]) if name.startswith(away) and shape else shape
            for name, shape in whole.items()
        }
        kept = [n for n in shapes if not n.startswith(away) or n == "blocks.0.shared"]
        numbers = sum(model.get_parameter(name).numel() for name in kept)
        assert size == 4 * (numbers + 2)  # the weights of the other block have one number for all


class _WholeBatch:
    reads_whole_batch = True

    def start(self, batch: Any) -> None:
        """Return no carry."""

    def preview(self, step: int) -> None:
        """Return no sample."""

    def weights(self, batch: Any) -> dict[str, float]:
        return {"loss": 1.0}

    def __call__(self, batch: Any, carry: Any) -> Any:
        return ObjectiveOutput({"loss": Term(torch.ones(()), 1.0)}), None


class _Rows:
    stream_starts, tokens, row_count = None, 1, 4

    def cut(self, rows: slice) -> "_Rows":
        return self


def refuse(world: World) -> list[str]:
    """Return why a pipeline of two processes can't be."""
    lines = []
    ranks = PipelineRanks(world.rank, world.size, 2, 2)
    for work in (
        lambda: ranks.check(_Stack),
        lambda: ranks.check(lambda: nn.Linear(2, 2)),
        lambda: ranks.check_micro_batches(1),
        lambda: ranks.check_micro_batches(5),
    ):
        with pytest.raises(UserError) as error:
            work()
        lines.append(str(error.value))
    ranks.check_micro_batches(6)
    model = _Stack()
    pair = PipelineRanks(world.rank, world.size, 2)
    placement = pair.place(model, lambda **paths: model(torch.zeros(1, 3, 4)))
    optimizer = Optimizer(model, OptimizerConfig(), placement)
    with pytest.raises(UserError) as error:
        train_step(
            model, _WholeBatch(), optimizer, [_Rows()], [None], lr=0.1, seed=(0,), slots=Slots(2, pair)
        )
    return [*lines, str(error.value)]


def test_what_can_not_be_a_pipeline() -> None:
    for few, none, one, five, whole in run_ranks(2, refuse):
        assert few.startswith("--pp 2: 2 blocks can't be cut into 4 stages")
        assert none == "--pp 2: this model has no stack of blocks that stages could share"
        assert one.endswith("multiple of 2, and this run has 1: start it with other --slots")
        assert "and this run has 5" in five
        assert whole.startswith("--pp: batch norm or the choice of rows needs all slots at the same time")
