"""Ranks that share the weights (`--fsdp`) gather them in bfloat16, and keep them in float32."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import OptimizerConfig
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import autocast
from foveal.data.core.batching import TokenBatch
from foveal.distributed.bfloat16_weights import bfloat16_weights
from foveal.distributed.sharded import ShardedRanks
from foveal.distributed.world import ONE_PROCESS, World
from foveal.training.optim import Optimizer
from foveal.training.placed_weights import own_state_dict, whole_weights
from foveal.training.slots import Slots
from foveal.training.step import train_step
from tests.support.ranks import run_ranks
from tests.support.short_trainings import rank_steps, train_steps

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "kind",
    [
        "language-model",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("experts", "translation", "stream-lstm", "stream-mamba", "stream-rwkv", "batch-norm")
        ),
    ],
)
def test_two_ranks_are_one_process_bit_for_bit(kind: str, folder: Path) -> None:
    """What is rounded to bfloat16, and where, is the same. A sum of two gradients has one order."""
    torch.set_num_threads(1)
    results, weights = train_steps(kind, Slots(2), torch.float32, "bfloat16")
    arguments = folder, ShardedRanks, kind, 2, torch.float32, "bfloat16"
    for others, after in run_ranks(2, rank_steps, *arguments):
        assert [one.loss for one in others] == [one.loss for one in results]
        assert all(torch.equal(after[name], weight) for name, weight in weights.items())


class Net(nn.Module):
    """A table, a norm, a router and matrices, of which two are joined before they compute."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(7, 8)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.norm = nn.LayerNorm(8)
        self.key, self.value = nn.Linear(8, 3, bias=False), nn.Linear(8, 5, bias=False)
        self.router = nn.Linear(8, 2)
        self.unused = nn.Linear(8, 8)
        self.projection = nn.Linear(8, 7)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens)
        for block in self.blocks:
            x = self.norm(x + block(x).tanh())
        x = F.linear(x, torch.cat([self.key.weight, self.value.weight]))
        with torch.autocast("cpu", enabled=False):
            gate = F.linear(x.float(), self.router.weight, self.router.bias).softmax(-1)
        return self.projection(x) * gate[..., :1]


EXACT = {"table", "norm", "router", "unused"}


def test_weights_that_are_converted_wherever_they_are_used() -> None:
    net = Net()
    with autocast(CPU, "bfloat16"):
        converted = bfloat16_weights(net, lambda: net(torch.arange(7)[None]))
    names = {name for name, weight in net.named_parameters() if weight in converted}
    assert names == {name for name, _ in net.named_parameters() if name.split(".")[0] not in EXACT}
    assert bfloat16_weights(net, lambda: net(torch.arange(7)[None])) == set(), "in float32"
    assert net.training


class NetObjective:
    """The cross-entropy of the next token. It notes the weights that it computes with in bfloat16."""

    def __init__(self, net: Net):
        self.net, self.in_bfloat16 = net, set[str]()

    def __call__(self, batch: TokenBatch, carry: Any) -> tuple[ObjectiveOutput, Any]:
        logits = self.net(batch.inputs)
        weights = self.net.named_parameters()
        self.in_bfloat16 |= {name for name, weight in weights if weight.dtype == torch.bfloat16}
        loss = F.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), reduction="sum")
        return ObjectiveOutput({"loss": Term(loss, float(batch.targets.numel()))}), None

    def weights(self, batch: TokenBatch) -> dict[str, float]:
        return {"loss": float(batch.targets.numel())}

    def start(self, batch: TokenBatch) -> Any:
        return None

    def preview(self, step: int) -> str | None:
        return str(float(self.net(torch.arange(7)[None]).sum()))


def small_steps(world: World) -> dict[str, Any]:
    """Return the weights before and after steps that are smaller than the gaps between bfloat16 numbers."""
    torch.set_num_threads(1)
    net = Net()
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    inner = NetObjective(net)
    tokens = torch.randint(7, (4, 6), generator=torch.Generator().manual_seed(1))

    def compute() -> None:
        with autocast(CPU, "bfloat16"):
            net(tokens[:1])

    ranks = ShardedRanks(world.rank, world.size) if world.size > 1 else world
    placement = ranks.place(net, compute)
    objective = placement.computing(inner)
    optimizer = Optimizer(net, OptimizerConfig(), placement)
    step = partial(train_step, net, objective, optimizer, [TokenBatch(tokens, tokens)], [None])
    for number in range(20):
        step(lr=1e-6, seed=(number,), precision="bfloat16", slots=Slots(2, ranks))
    with torch.no_grad():
        preview = objective.preview(0)
    held = [*own_state_dict(net, placement).values(), *(value for value, _ in optimizer.state().values())]
    return {
        "before": before,
        "after": {name: weight.clone() for name, weight in whole_weights(net, placement)},
        "in bfloat16": inner.in_bfloat16,
        "held": {value.dtype for value in held},
        "preview": preview,
    }


def test_the_parts_stay_float32() -> None:
    """Steps of 1e-6 are lost in weights of bfloat16, which have three digits."""
    alone = small_steps(ONE_PROCESS)
    for rank in run_ranks(2, small_steps):
        assert rank["held"] == {torch.float32}
        assert rank["in bfloat16"] == {
            *("key.weight", "value.weight", "projection.weight", "projection.bias")
        }, "outside of the blocks, whose weights are in parts before and after"
        assert float(rank["preview"]) == pytest.approx(float(alone["preview"]), rel=0.05)
        for name, after in rank["after"].items():
            assert torch.allclose(after, alone["after"][name], rtol=0, atol=1e-8), name
        matrix = "projection.weight"
        before, after = rank["before"][matrix], rank["after"][matrix]
        assert (after != before).all()
        assert (after.bfloat16() == before.bfloat16()).float().mean() > 0.7
