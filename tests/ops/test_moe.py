"""Routing: who is sent where, and experts computed for their own vectors alone equal the plain loop."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.core.runtime import autocast
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.moe import (
    apply_experts,
    drop_above_capacity,
    grouped_linear,
    load_balancing_loss,
    top_k_routing,
)

N, D, H, E, A = 11, 5, 6, 4, 2
CHOICES = {
    "spread": lambda: torch.rand(N, E).argsort(-1)[:, :A],
    "all the same": lambda: torch.tensor([2, 0]).expand(N, A),
    "one vector": lambda: torch.tensor([[3, 1]]),
    "with padding": lambda: torch.rand(N, E).argsort(-1)[:, :A].masked_fill(torch.rand(N, 1) < 0.4, E),
    "padding alone": lambda: torch.full((N, A), E),
    "no vectors": lambda: torch.zeros(0, A, dtype=torch.long),
}


def inputs(rows: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """x, gates, expand, contract."""
    shapes = (rows, D), (rows, A), (E, H, D), (E, D, H)
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def results(expert_ids: Tensor, x: Tensor, gates: Tensor, *weights: Tensor) -> list[Tensor]:
    """The output and every gradient."""
    expand, contract = weights
    y = apply_experts(x, expert_ids, gates, expand, contract, F.gelu)
    loss = (y * torch.arange(y.numel()).view_as(y).cos()).sum()
    return [y, *torch.autograd.grad(loss, [x, gates, *weights])]


@pytest.mark.parametrize("choice", list(CHOICES))
def test_sorted_experts_equal_their_reference(choice):
    torch.manual_seed(0)
    chosen = CHOICES[choice]()
    parts = inputs(len(chosen))
    with record_paths() as ran:
        fast = results(chosen, *parts)
    with reference_only():
        reference = results(chosen, *parts)
    assert ran == ["moe:sorted"]
    for a, b in zip(fast, reference, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    nowhere = (chosen == E).all(-1)
    assert all(result[nowhere].eq(0).all() for result in fast[:2])


def test_reference_is_the_sum_over_the_chosen():
    chosen = CHOICES["spread"]()
    x, gates, expand, contract = inputs(N)
    with reference_only():
        y = apply_experts(x, chosen, gates, expand, contract, torch.tanh)
    for n in range(N):
        terms = [gates[n, a] * contract[e] @ (expand[e] @ x[n]).tanh() for a, e in enumerate(chosen[n])]
        torch.testing.assert_close(y[n], torch.stack(terms).sum(0))


@pytest.mark.parametrize("path", ["sorted", "reference"])
def test_experts_under_autocast(path):
    """Products in bfloat16, sums and gradients in the weights' precision."""
    torch.manual_seed(0)
    chosen, parts = CHOICES["with padding"](), inputs(N, torch.float32)
    exact = results(chosen, *parts)
    lower = []
    for x in (parts[0], parts[0].detach().bfloat16().requires_grad_()):
        with autocast(x.device, "bfloat16"):
            if path == "reference":
                with reference_only():
                    lower = results(chosen, x, *parts[1:])
            else:
                lower = results(chosen, x, *parts[1:])
        assert [part.dtype for part in lower] == [torch.float32, x.dtype, *[torch.float32] * 3]
        for a, b in zip(lower, exact, strict=True):
            assert (a - b).norm() < 0.02 * b.norm()
            assert not torch.equal(a, b)


def test_experts_in_bfloat16_have_few_numbers_of_rows(monkeypatch: pytest.MonkeyPatch):
    """Rows of zeros are added, which change no output and no gradient."""
    seen: list[list[int]] = []

    def watched(x: Tensor, weight: Tensor, sizes: list[int]) -> Tensor:
        seen.append(sizes)
        return grouped_linear(x, weight, sizes)

    monkeypatch.setattr("foveal.ops.moe.grouped_linear", watched)
    torch.manual_seed(0)
    chosen = torch.rand(301, E).mul(torch.tensor([1.0, 1.2, 0.9, 0.1])).argsort(-1)[:, :A]
    parts = inputs(len(chosen), torch.float32)
    exact = results(chosen, *parts)
    counts = chosen.flatten().bincount(minlength=E).tolist()
    assert seen == [counts, counts]
    with autocast(parts[0].device, "bfloat16"):
        lower = results(chosen, *parts)
    for a, b in zip(lower, exact, strict=True):
        assert (a - b).norm() < 0.02 * b.norm()
    for count, rounded in zip(counts, seen[-1], strict=True):
        assert count <= rounded <= 9 / 8 * count
        assert rounded % (1 << (count.bit_length() - 4)) == 0
    assert counts != seen[-1]


def test_grouped_linear_has_the_right_gradient():
    x, weight = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((7, 3), (4, 2, 3)))
    assert torch.autograd.gradcheck(lambda x, weight: grouped_linear(x, weight, [3, 0, 4, 0]), (x, weight))


def test_route():
    """Gates in proportion to the chances; a single one keeps its chance; padding goes nowhere."""
    chances = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4]])
    chosen, gates = top_k_routing(chances, 2)
    assert chosen.tolist() == [[1, 2], [0, 2]]
    torch.testing.assert_close(gates, torch.tensor([[6 / 9, 3 / 9], [5 / 9, 4 / 9]]))
    chosen, gates = top_k_routing(chances, 1, torch.tensor([False, True]))
    assert chosen.tolist() == [[3], [0]]
    torch.testing.assert_close(gates, torch.tensor([[0.6], [0.5]]))
    torch.testing.assert_close(top_k_routing(chances, 3)[1].sum(-1), torch.ones(2))


def test_capacity():
    """Each expert has room for `ceil(factor * 4 * 2 / 2)` of four vectors; first choices come first."""
    chosen = torch.tensor([[[0, 1], [0, 1], [0, 1], [1, 0]]])
    assert torch.equal(drop_above_capacity(chosen, 2, 1.0), chosen)
    assert drop_above_capacity(chosen, 2, 0.75).tolist() == [[[0, 1], [0, 1], [0, 2], [1, 2]]]
    assert drop_above_capacity(chosen, 2, 0.2).tolist() == [[[0, 2], [2, 2], [2, 2], [1, 2]]]


def test_capacity_is_that_of_a_row():
    """Padding takes no room, and neither do other rows."""
    rows = torch.tensor([[[0], [0], [2], [2]], [[0], [0], [0], [1]]])
    assert drop_above_capacity(rows, 2, 1.0).flatten(1).tolist() == [[0, 2, 2, 2], [0, 0, 2, 1]]


def test_balance():
    """Three rows with known results: a row with one expert, a row that uses all experts equally, and only
    padding."""
    chances = torch.tensor([[[1.0, 0, 0, 0]] * 4, [[0.25] * 4] * 4, [[0.7, 0.1, 0.1, 0.1]] * 4])
    chosen = torch.stack([torch.zeros(4, 1), torch.arange(4.0)[:, None], torch.full((4, 1), 4.0)]).long()
    torch.testing.assert_close(load_balancing_loss(chances, chosen), torch.tensor([4.0, 1.0, 0.0]))
    chosen[0, 2:] = 4
    torch.testing.assert_close(load_balancing_loss(chances, chosen), torch.tensor([4.0, 1.0, 0.0]))
