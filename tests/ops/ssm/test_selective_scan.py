"""Every path of the selective scan equals the loop over its equation: outputs, last state, all gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional as F

from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.ssm.selective_scan import chunked_backward, chunked_forward, selective_scan

E, N = 16, 16
# Less than a chunk of time, several, a ragged last one; a batch so large that chunks are shorter.
SIZES = [(1, 1), (1, 64), (2, 200), (3, 129), (1, 512), (80, 100)]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6}


def drawn(rows: int, T: int, dtype: torch.dtype, E: int = E, N: int = N) -> list[Tensor]:
    """u, delta, A, B, C and the first state; some states decay at once, some hardly."""
    u, delta = torch.randn(2, rows, T, E, dtype=dtype)
    B, C = torch.randn(2, rows, T, N, dtype=dtype)
    A = -torch.arange(1, N + 1, dtype=dtype) * torch.rand(E, 1, dtype=dtype).add(0.1)
    return [u, F.softplus(delta - 2), A, B, C, torch.randn(rows, E, N, dtype=dtype)]


def everything(inputs: list[Tensor]) -> list[Tensor]:
    """Outputs, last state, and the gradient of a fixed functional of both to each input."""
    inputs = [part.detach().requires_grad_() for part in inputs]
    outputs = selective_scan(*inputs)
    loss: Any = sum((out * torch.arange(out.numel()).view_as(out).cos()).sum() for out in outputs)
    return [*outputs, *torch.autograd.grad(loss, inputs)]


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_paths_are_equal(size: tuple[int, int], dtype: torch.dtype):
    inputs = drawn(*size, dtype)
    with record_paths() as ran:
        fast = everything(inputs)
    assert ran[-1] != "selective_scan:reference"
    with reference_only():
        expected = everything(inputs)
    for a, b in zip(fast, expected, strict=True):
        assert (a - b).abs().max() <= TOLERANCE[dtype] * b.abs().max()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_chunked_path_is_equal_in_float32(size: tuple[int, int]):
    """Called by itself: with a kernel present float32 does not come by it."""
    inputs = drawn(*size, torch.float32)
    y, last, kept = chunked_forward(*inputs)
    dy, dlast = (torch.arange(out.numel()).view_as(out).cos() for out in (y, last))
    u, delta, A, B, C, _ = inputs
    gradients = chunked_backward(dy, dlast, u, delta, A, B, C, kept)
    with reference_only():
        expected = everything(inputs)
    for a, b in zip([y, last, *gradients], expected, strict=True):
        assert a.shape == b.shape
        assert (a - b).abs().max() <= TOLERANCE[torch.float32] * b.abs().max()


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_a_step_of_zero_leaves_the_state_bit_for_bit(dtype):
    """So rows of different lengths need steps of zero in the padding, and nothing more."""
    u, delta, A, B, C, first = drawn(3, 150, dtype)
    lengths = [150, 70, 0]
    for row, length in enumerate(lengths):
        delta[row, length:] = 0
    _, last = selective_scan(u, delta, A, B, C, first)
    assert torch.equal(last[2], first[2])
    for row, n in enumerate(lengths[:2]):
        one = [part[row : row + 1] for part in (u, delta, B, C, first)]
        own = [part[:, :n] for part in one[:4]]
        _, expected = selective_scan(own[0], own[1], A, own[2], own[3], one[4])
        torch.testing.assert_close(last[row], expected[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("T", [5, 67])
def test_gradient(T):
    """Against finite differences; 67 steps are two chunks."""
    inputs = [part.requires_grad_() for part in drawn(2 if T == 5 else 1, T, torch.float64, 2, 2)]
    assert gradcheck(selective_scan, inputs, atol=1e-7, rtol=1e-5)


def test_a_decayed_state_is_zero_not_nan():
    """Steps so long that every decay is 0, and so short that it is 1."""
    for step in (1e30, 1e-30):
        u, delta, A, B, C, first = drawn(1, 70, torch.float32)
        y, last = selective_scan(u, torch.full_like(delta, step), A, torch.zeros_like(B), C, first)
        assert torch.equal(last, torch.zeros_like(first) if step > 1 else first)
        assert y.isfinite().all()


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_share_the_channels_of_a_row(threads):
    """Sums over channels are made of shares, the rest is the same bit for bit."""
    inputs = drawn(1, 150, torch.float32, E=40)
    alone = everything(inputs)
    torch.set_num_threads(threads)
    try:
        shared = everything(inputs)
    finally:
        torch.set_num_threads(1)
    for number, (a, b) in enumerate(zip(shared, alone, strict=True)):
        assert torch.equal(a, b) or number in (5, 6)  # dB and dC
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
