"""The kernel for short sequences equals the equation in outputs and gradients, whatever it is given."""

import math

import pytest
import torch
from torch import Tensor

from foveal.ops.attention import short_attention as short
from foveal.ops.attention.dot_product import attention, attention_reference
from foveal.ops.attention.short_attention import short_attention
from foveal.ops.jit.dispatch import record_paths

B, H = 3, 2

pytestmark = pytest.mark.skipif(
    not short._forward.usable() or not short._backward.usable(), reason="kernels are off"
)


def draw(T: int, S: int, K: int, rows: int = B, heads: int = H) -> list[Tensor]:
    """q, k, v and the gradient of y as the layers have them: pieces of one product, seen as (B, H, T, K)."""
    if T == S:
        parts = torch.randn(rows, T, 3 * heads, K).chunk(3, 2)
    else:
        parts = (torch.randn(rows, T, heads, K), *torch.randn(rows, S, 2 * heads, K).chunk(2, 2))
    return [part.transpose(1, 2) for part in (*parts, torch.randn(rows, T, heads, K))]


def holes(S: int) -> Tensor:
    """Padding: a row without any key, one whose first queries see none, one of half its length."""
    keys = torch.rand(B, 1, 1, S) < 0.6
    keys[0] = False
    keys[1, ..., : S // 3] = False
    keys[2] = torch.arange(S) < S / 2
    return keys


def outcome(compute, parts: list[Tensor], *settings) -> list[Tensor]:
    q, k, v = (part.detach().requires_grad_() for part in parts[:3])
    y = compute(q, k, v, *settings)
    return [y.detach(), *torch.autograd.grad(y, (q, k, v), parts[3].to(y.dtype))]


def exact(parts: list[Tensor], *settings) -> list[Tensor]:
    return [
        part.float() for part in outcome(attention_reference, [part.double() for part in parts], *settings)
    ]


def same(found: list[Tensor], expected: list[Tensor]) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("T", "S", "K"),
    [
        (1, 1, 16),
        (2, 2, 32),
        (31, 31, 16),
        (32, 32, 48),
        (33, 33, 32),
        (65, 65, 64),
        (197, 197, 32),
        (5, 40, 16),
        (40, 41, 16),
        (33, 100, 80),
        (64, 512, 16),
    ],
)
def test_it_equals_the_equation(T, S, K, causal, masked):
    parts, visible = draw(T, S, K), holes(S) if masked else None
    found = outcome(short_attention, parts, visible, causal)
    same(found, exact(parts, visible, causal))
    if masked:
        assert all(part[0].eq(0).all() for part in found), "nothing seen: zeros, and no gradient"


@pytest.mark.parametrize(("T", "S"), [(40, 3), (100, 17)])
def test_more_queries_than_keys(T, S):
    parts = draw(T, S, 16)
    for visible in (None, holes(S)):
        same(outcome(short_attention, parts, visible), exact(parts, visible))


@pytest.mark.parametrize(("rows", "heads"), [(1, 1), (1, 3), (40, 1)])
def test_any_number_of_heads(rows, heads):
    parts = draw(50, 50, 16, rows, heads)
    shared = torch.rand(1, 1, 1, 50) < 0.6
    for visible in (None, shared):
        same(outcome(short_attention, parts, visible, True), exact(parts, visible, True))


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_any_layout(which):
    """The last axis has to be dense, and only that: else another path is taken, or the gradient is copied."""
    parts = draw(160, 160, 16)
    parts[which] = parts[which].transpose(2, 3).contiguous().transpose(2, 3)
    with record_paths() as ran:
        found = outcome(attention, parts, None, True)
    assert ran == ["attention:short" if which == 3 else "attention:fused"]
    same(found, exact(parts, None, True))
    parts[which] = torch.ones(()).expand(B, H, 160, 16)
    same(outcome(attention, parts, None, True), exact(parts, None, True))


def test_what_it_is_for():
    """Queries not much fewer than keys, not too many of them, enough work; masks of keys that heads share."""
    T, S, enough = 96, 96, short.MIN_PRODUCTS // (96 * 96 * 16) + 1
    keys, heads, pairs = (torch.ones(shape, dtype=torch.bool) for shape in ((1, 1, S), (2, 1, S), (1, T, S)))
    most, causal_most = short.MAX_KEYS, short.MAX_KEYS_CAUSAL
    for path, rows, T, S, K, visible, causal, window in [
        ("short", enough, 96, 96, 16, None, False, 0),
        ("short", enough, 96, 96, 16, keys, True, 0),
        ("short", enough, 96, 96, 16, None, True, 96),
        ("fused", enough // 2, 96, 96, 16, None, False, 0),
        ("fused", enough, 96, 96, 16, heads, False, 0),
        ("fused", enough, 96, 96, 16, pairs, False, 0),
        ("fused", enough, 96, 96, 24, None, False, 0),
        ("fused", enough, 96, 96, 16, None, True, 5),
        ("short", enough, 50, 200, 16, None, False, 0),
        ("fused", enough, 49, 200, 16, None, False, 0),
        ("short", 1, most, most, 16, None, False, 0),
        ("fused", 1, most + 1, most + 1, 16, None, False, 0),
        ("short", 1, causal_most, causal_most, 16, None, True, 0),
        ("fused", 1, causal_most + 1, causal_most + 1, 16, None, True, 0),
    ]:
        parts = draw(T, S, K, rows, 2)
        settings = (None if visible is None else visible[None], causal, window)
        with record_paths() as ran:
            found = outcome(attention, parts, *settings)
        assert ran == [f"attention:{path}"], (rows, T, S, K, causal, window)
        same(found, exact(parts, *settings))


@pytest.mark.parametrize("size", [1e-30, 1e3, 1e6])
def test_huge_and_tiny_numbers(size):
    """One weight is 1 and the others 0, or all are alike."""
    parts = draw(40, 40, 16)
    parts[0] = parts[0] * size
    found, expected = outcome(short_attention, parts, None, True), exact(parts, None, True)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-3, atol=1e-3)
    assert all(part.isfinite().all() for part in found)


def test_nan_is_passed_on():
    """A row and head with NaN gives NaN; the others do not know of it."""
    for which in range(3):
        parts = draw(20, 20, 16)
        parts[which] = parts[which].clone()
        parts[which][1, 1, 19, 3] = math.nan
        found = outcome(short_attention, parts, None, False)[0]
        assert found[1, 1, 19].isnan().any()
        found[1, 1] = 0
        assert found.isfinite().all()


def test_the_way_back_knows_which_gradients_are_wanted():
    q, k, v, dy = draw(20, 20, 16)
    v = v.detach().requires_grad_()
    (dv,) = torch.autograd.grad(short_attention(q, k, v), v, dy)
    same([dv], exact([q, k, v, dy])[3:])
