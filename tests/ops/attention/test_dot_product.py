"""Every way to compute attention equals its equation, in outputs and gradients; none makes a T x T tensor."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from foveal.ops.attention import dot_product as ops
from foveal.ops.attention.dot_product import QUERY_CHUNK, attention, attention_reference, causal_mask
from foveal.ops.jit.dispatch import record_paths

B, H, K = 3, 2, 8
LONG = 2 * QUERY_CHUNK + 44


def draw(T: int, S: int, dtype: torch.dtype, width: int = K) -> list[Tensor]:
    """q, k, v and the gradient of y, laid out as the layer has them: (B, T, H, K) seen as (B, H, T, K)."""
    sizes = (T, S, S, T)
    return [torch.randn(B, size, H, width, dtype=torch.float64).to(dtype).transpose(1, 2) for size in sizes]


def mask_of_keys(S: int) -> Tensor:
    """Holes, a row without any key, and one whose first queries see none."""
    keys = torch.rand(B, 1, 1, S) < 0.6
    keys[0] = False
    keys[1, ..., : S // 3] = False
    return keys


def outcome(compute, parts: list[Tensor], *settings) -> list[Tensor]:
    q, k, v = (part.detach().requires_grad_() for part in parts[:3])
    y = compute(q, k, v, *settings)
    return [y, *torch.autograd.grad(y, (q, k, v), parts[3].to(y.dtype))]


def same(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.to(b.dtype), b, rtol=tolerance, atol=tolerance)


SIZES = [
    # T, S, window
    (LONG, LONG, 0),
    (LONG, LONG + 70, 0),
    (LONG, LONG, 1),
    (LONG, LONG, 5),
    (LONG, LONG + 4, 5),
    (2 * QUERY_CHUNK, 2 * QUERY_CHUNK + 199, 200),
    (QUERY_CHUNK + 1, QUERY_CHUNK + 1, QUERY_CHUNK),
    (LONG, LONG, LONG - 1),
    (LONG, LONG, LONG + 9),
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("T", "S", "window"), SIZES)
def test_long_causal_attention_equals_the_equation(T, S, window, masked):
    """In float64 exactly; in float32 and bfloat16 against float64 to their own precision."""
    visible = mask_of_keys(S) if masked else None
    for dtype, tolerance in [(torch.float64, 1e-10), (torch.float32, 1e-4), (torch.bfloat16, 0.06)]:
        parts = draw(T, S, dtype)
        with record_paths() as ran:
            found = outcome(attention, parts, visible, True, window)
        triangle = T == S and (window == 0 or window >= S)
        path = "chunks" if not triangle else "keys" if masked else "fused"
        assert ran == [f"attention:{path}"]
        expected = outcome(attention_reference, [part.double() for part in parts], visible, True, window)
        same(found, expected, tolerance)
        if masked:
            assert all(part[0].eq(0).all() for part in found), "nothing seen: zeros, and no gradient"


@pytest.mark.parametrize("shape", [(1, 1, 1, LONG), (B, H, 1, LONG), (1, H, 1, LONG)])
@pytest.mark.parametrize("window", [0, 7])
def test_a_mask_of_keys_may_be_shared_or_each_head_s_own(shape, window):
    parts, visible = draw(LONG, LONG, torch.float64), torch.rand(shape) < 0.6
    settings = (visible, True, window)
    same(outcome(attention, parts, *settings), outcome(attention_reference, parts, *settings), 1e-10)


@pytest.mark.parametrize("T", [1, 3])
@pytest.mark.parametrize("window", [0, 1, 4, 50])
def test_few_queries_at_the_end_of_many_keys(T, window):
    parts, visible = draw(T, 12, torch.float64), mask_of_keys(12)
    for mask in (None, visible):
        same(
            outcome(attention, parts, mask, True, window),
            outcome(attention_reference, parts, mask, True, window),
            1e-10,
        )


@pytest.mark.parametrize("which", [0, 1, 2, 3])
@pytest.mark.parametrize("window", [0, 7])
def test_any_layout(which, window):
    """The kernel, called directly, reads the last axis as if it were dense; it must be given nothing else."""
    parts = draw(LONG, LONG, torch.float64)
    parts[which] = parts[which].transpose(2, 3).contiguous().transpose(2, 3)
    settings = (mask_of_keys(LONG), True, window)
    same(outcome(attention, parts, *settings), outcome(attention_reference, parts, *settings), 1e-10)
    parts[which] = torch.ones((), dtype=torch.float64).expand(B, H, LONG, K)
    same(outcome(attention, parts, *settings), outcome(attention_reference, parts, *settings), 1e-10)


@pytest.mark.parametrize("masked", ["no", "keys", "pairs", "pairs of heads"])
@pytest.mark.parametrize(("causal", "window"), [(False, 0), (True, 0), (True, 5)])
def test_plain_products_equal_the_equation(masked, causal, window):
    T = 40
    pairs = torch.rand(B, 1, T, T) < 0.4
    pairs[0, :, 2] = False
    heads = torch.rand(1, H, T, T) < 0.6
    visible = {"keys": mask_of_keys(T), "pairs": pairs, "pairs of heads": heads}.get(masked)
    exact = draw(T, T, torch.float64)
    settings = (visible, causal, window)
    expected = outcome(attention_reference, exact, *settings)
    same(outcome(ops._product_attention, exact, *settings), expected, 1e-10)
    with record_paths() as ran, torch.autocast("cpu", torch.bfloat16):
        found = outcome(attention, [part.bfloat16() for part in exact], *settings)
    assert ran == ["attention:products"]
    assert all(part.dtype == torch.bfloat16 for part in found), "autocast has no say in it"
    same(found, expected, 0.06)


@pytest.mark.parametrize("queries", [1, 4, 7])
@pytest.mark.parametrize("window", [0, 1, 3, 9])
def test_causal_mask_with_more_keys_is_the_end_of_the_square(queries, window):
    whole = causal_mask(7, window)
    assert torch.equal(causal_mask(queries, window, keys=7), whole[7 - queries :])


class Largest(TorchDispatchMode):
    """The bytes of the largest tensor that any operation gave."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for part in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(part, Tensor):
                self.bytes = max(self.bytes, part.untyped_storage().nbytes())
        return result


@pytest.mark.parametrize(
    ("masked", "causal", "window"),
    [(False, True, 0), (True, True, 0), (True, False, 0), (False, True, 100), (True, True, 100)],
)
def test_nothing_is_as_large_as_all_pairs(masked, causal, window):
    """Forward and backward at two lengths: the largest tensor grows with T, not with its square."""
    found = []
    for T in (1024, 4096):
        parts = draw(T, T, torch.float32, width=1)
        visible = torch.rand(B, 1, 1, T) < 0.6 if masked else None
        with Largest() as largest:
            outcome(attention, parts, visible, causal, window)
        found.append(largest.bytes)
    assert found[1] <= 4.1 * found[0]
    assert found[1] < 4096 * 4096
