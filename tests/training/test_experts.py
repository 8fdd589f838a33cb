"""Ranks that share the experts of a model (`--ep`) train as one process does, each with its experts."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal import layers
from foveal.core.errors import UserError
from foveal.distributed.experts import ExpertRanks, SharedExperts, spread
from foveal.distributed.world import Ranks, World
from foveal.ops.moe import apply_experts
from foveal.ops.spread_experts import apply_spread_experts
from foveal.training.placed_weights import own_state_dict
from tests.support.ranks import run_ranks
from tests.support.short_trainings import check_equal_launches, check_equal_training

D, H, E, A = 4, 6, 5, 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "mesh"),
    [(2, {"ep": 2}), (4, {"ep": 4}), (4, {"ep": 2}), (4, {"ep": 2, "tp": 2})],
    ids=["two ranks", "four ranks", "two copies of the experts", "with split layers"],
)
@pytest.mark.parametrize("kind", ["experts", "deep-experts", "dropping-experts"])
def test_shared_experts_train_as_whole_ones(
    kind: str, processes: int, mesh: dict[str, int], folder: Path
) -> None:
    check_equal_training(kind, 4, processes, partial(ExpertRanks, **mesh), folder)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_equal_bits_from_launch_to_launch(precision: str, folder: Path) -> None:
    check_equal_launches("experts", 4, 2, partial(ExpertRanks, ep=2), folder, precision)


def inputs(rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return vectors of a rank, their experts (some have none) and gates."""
    torch.manual_seed(rank)
    count = 3 * rank  # the first rank has no vectors
    ids = torch.randint(E + 1, (count, A))
    return torch.randn(count, D).double().requires_grad_(), ids, torch.rand(count, A).double()


def weights() -> tuple[Tensor, Tensor]:
    torch.manual_seed(9)
    expand, contract = torch.randn(E, H, D).double(), torch.randn(E, D, H).double()
    return expand.requires_grad_(), contract.requires_grad_()


def compute(world: World) -> dict[str, Tensor]:
    """Return the outputs of a rank, and the gradients of its vectors and of its experts."""
    assert isinstance(world, Ranks)
    group = SharedExperts(world)
    x, ids, gates = inputs(world.rank)
    expand, contract = (weight[group.rows(E)].detach().requires_grad_() for weight in weights())
    y = apply_spread_experts(x, ids, gates, expand, contract, F.gelu, E, group)
    loss = (y * torch.arange(y.numel()).view_as(y).cos()).sum()
    gradients = torch.autograd.grad(loss, (x, expand, contract))
    return {"y": y.detach(), **dict(zip(("x", "expand", "contract"), gradients, strict=True))}


def test_vectors_travel_to_their_experts_and_back() -> None:
    """Also where a rank has no vectors, experts are uneven, and some vectors have no expert."""
    expand, contract = weights()
    results = run_ranks(3, compute)
    for rank, result in enumerate(results):
        x, ids, gates = inputs(rank)
        y = apply_experts(x, ids, gates, expand, contract, F.gelu)
        (y * torch.arange(y.numel()).view_as(y).cos()).sum().backward()
        assert x.grad is not None
        assert torch.allclose(result["y"], y, atol=1e-12)
        assert torch.allclose(result["x"], x.grad, atol=1e-12)
    assert [len(result["expand"]) for result in results] == [2, 2, 1]
    for name, weight in (("expand", expand), ("contract", contract)):
        assert weight.grad is not None
        assert torch.allclose(torch.cat([result[name] for result in results]), weight.grad, atol=1e-12)


def own_parts(world: World) -> tuple[dict[str, int], dict[str, bool]]:
    model = layers.Experts(D, H, E, A)
    placement = ExpertRanks(world.rank, world.size, 2).place(model, lambda: None)
    own = own_state_dict(model, placement)
    return {name: len(part) for name, part in own.items()}, {n: placement.counts(p) for n, p in own.items()}


def test_a_rank_holds_its_experts() -> None:
    (first, counts), (second, others) = run_ranks(2, own_parts)
    assert first == {"router.weight": E, "weight_expand": 3, "weight_contract": 3}
    assert second == {"router.weight": E, "weight_expand": 2, "weight_contract": 2}
    assert all(counts.values())
    assert others == {"router.weight": False, "weight_expand": True, "weight_contract": True}


class FewRanks(SharedExperts):
    def __init__(self, size: int):
        self.rank, self.size = 0, size


@pytest.mark.parametrize(
    ("make", "size", "message"),
    [
        (lambda: layers.Experts(D, H, E, A), 6, "--ep 6: the model: 5 experts can't be split among 6 ranks"),
        (lambda: layers.MLP(D, H), 2, "--ep 2: this model has no experts: leave out --ep, or set model"),
    ],
)
def test_experts_that_can_not_be_shared(make: Any, size: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        spread(make(), FewRanks(size))


def test_dropped_vectors_are_counted_in_training_alone() -> None:
    torch.manual_seed(0)
    experts = layers.Experts(D, H, E, 1, capacity=0.5)
    x = torch.randn(2, 20, D)
    y, aux = experts(x, torch.tensor([20, 10]))
    dropped = y.eq(0).all(-1)
    dropped[1, 10:] = False
    assert aux["dropped"].tolist() == dropped.sum(1).tolist()
    assert (aux["dropped"] >= torch.tensor([20 - E * 2, 10 - E])).all()
    _, aux = experts.eval()(x, None)
    assert not aux["dropped"].any()
