"""Rotary positions: the kernel turns as the equation does, whatever lies between the positions."""

import pytest
import torch

from foveal.ops.attention.rotary import apply_rotary
from foveal.ops.jit.dispatch import record_paths, reference_only


def both(x, positions):
    """Output and gradient by each path."""
    dy = torch.randn(x.shape)
    results = []
    for path in ("kernel", "reference"):
        with record_paths() as ran:
            if path == "kernel":
                y = apply_rotary(x, positions)
            else:
                with reference_only():
                    y = apply_rotary(x, positions)
        assert ran == [f"rotary:{path}"]
        results.append((y, *torch.autograd.grad(y, x, dy)))
    return results


@pytest.mark.parametrize(
    ("B", "T", "H", "K"), [(3, 7, 4, 32), (1, 129, 2, 64), (5, 1, 3, 96), (2, 300, 8, 32)]
)
@pytest.mark.parametrize("of_each", [True, False])
def test_kernel_is_the_equation(B, T, H, K, of_each):
    x = torch.randn(B, T, H, K, requires_grad=True)
    positions = torch.randint(0, 5000, (B if of_each else 1, T))
    kernel, reference = both(x, positions)
    torch.testing.assert_close(kernel, reference)


def test_heads_beside_others():
    """Some heads of each position, as queries and keys stand beside values."""
    together = torch.randn(3, 9, 6, 32, requires_grad=True)
    x = together[:, :, 1:5]
    kernel, reference = both(x, torch.arange(9)[None])
    torch.testing.assert_close(kernel, reference)
    one = together[:, :1, 2:4]
    kernel, reference = both(one, torch.tensor([[3], [0], [8]]))
    torch.testing.assert_close(kernel, reference)


@pytest.mark.parametrize("shape", [(2, 5, 3, 24), (2, 5, 3, 2)])
def test_other_widths_go_by_the_equation(shape):
    with record_paths() as ran:
        apply_rotary(torch.randn(shape), torch.arange(5)[None])
    assert ran == ["rotary:reference"]


def test_positions_first_and_heads_apart():
    x = torch.randn(2, 3, 5, 32).transpose(1, 2)  # (B, T, H, K) of heads that lie T K apart
    with record_paths() as ran:
        y = apply_rotary(x, torch.arange(5)[None])
    assert ran == ["rotary:reference"]
    torch.testing.assert_close(y, apply_rotary(x.contiguous(), torch.arange(5)[None]))


def test_places_of_millions_are_told_apart():
    """A product depends only on the distance of the positions, even at positions of millions."""
    q, k = torch.randn(2, 1, 1, 1, 32)
    products = []
    for place in (0, 3_000_000, 2**24 + 1):
        turned = [apply_rotary(x, torch.tensor([[at]])) for x, at in ((q, place + 5), (k, place))]
        products.append((turned[0] * turned[1]).sum())
    torch.testing.assert_close(products[1:], products[:1] * 2, rtol=1e-5, atol=1e-5)
