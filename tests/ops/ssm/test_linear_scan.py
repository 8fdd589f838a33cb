"""Every path of the scan equals the loop in states and gradients, at any length around a chunk's."""

import pytest
import torch
from torch import Tensor

from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.ssm.linear_scan import (
    CHUNK_STEPS,
    chunked_scan,
    chunked_scan_gradients,
    kernel_scan,
    kernel_scan_gradients,
    linear_scan,
    linear_scan_reference,
)

B, N = 2, 3
SIZES = [
    1,
    2,
    CHUNK_STEPS - 1,
    CHUNK_STEPS,
    CHUNK_STEPS + 1,
    3 * CHUNK_STEPS + 5,
    CHUNK_STEPS**2 + CHUNK_STEPS + 1,
]


def problem(size: int, dtype: torch.dtype = torch.complex128) -> tuple[Tensor, Tensor, Tensor]:
    decay = torch.polar(torch.tensor([0.5, 0.9, 1.0]).double(), torch.tensor([0.0, 3.0, -0.1]).double())
    first, v = torch.randn(B, N, dtype=dtype), torch.randn(B, size, N, dtype=dtype)
    return decay.to(dtype).requires_grad_(), v.requires_grad_(), first.requires_grad_()


@pytest.mark.parametrize("size", SIZES)
def test_chunks_equal_the_loop(size):
    wanted = problem(size)
    weight, found = torch.randn(B, size, N, dtype=torch.complex128), []
    with record_paths() as ran:
        states = linear_scan(*wanted)
        found.append([states, *torch.autograd.grad(states, wanted, weight)])
        with reference_only():
            states = linear_scan(*wanted)
        found.append([states, *torch.autograd.grad(states, wanted, weight)])
    assert "linear_scan:chunks" in ran
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 64, 100, 130])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_kernel_equals_the_loop(size, threads):
    """The numbers of states are larger than a vector, and not multiples of its length."""
    torch.set_num_threads(threads)
    decay = torch.polar(torch.rand(21), torch.randn(21)).requires_grad_()
    v, first = (
        torch.randn(*shape, 21, dtype=torch.complex64).requires_grad_() for shape in ((B, size), (B,))
    )
    weight, found = torch.randn_like(v), []
    with record_paths() as ran:
        states = linear_scan(decay, v, first)
    found.append([states, *torch.autograd.grad(states, (decay, v, first), weight)])
    states = linear_scan_reference(decay, v, first)
    found.append([states, *torch.autograd.grad(states, (decay, v, first), weight)])
    torch.set_num_threads(1)
    assert ran == ["linear_scan:kernel"]
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("scan", "gradients", "tolerance"),
    [(chunked_scan, chunked_scan_gradients, 1e-10), (kernel_scan, kernel_scan_gradients, 1e-5)],
)
def test_forward_and_backward_stand_alone(scan, gradients, tolerance):
    """Plain functions of plain tensors."""
    dtype = torch.complex128 if scan is chunked_scan else torch.complex64
    decay, v, first = problem(CHUNK_STEPS + 3, dtype)
    states, weight = linear_scan_reference(decay, v, first), torch.randn_like(v)
    expected = torch.autograd.grad(states, (decay, v, first), weight)
    with torch.no_grad():
        torch.testing.assert_close(scan(decay, v, first), states, rtol=tolerance, atol=tolerance)
        found = gradients(decay, states, first, weight)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_the_inputs_stay_as_they_were():
    decay, v, initial = inputs = [part.detach() for part in problem(2 * CHUNK_STEPS)]
    kept = [part.clone() for part in inputs]
    chunked_scan(decay, v, initial)
    kernel_scan(*(part.to(torch.complex64) for part in inputs))
    assert all(map(torch.equal, inputs, kept))


def test_real_numbers_do_as_well():
    decay, v, first = torch.rand(N).double(), torch.randn(B, 70, N).double(), torch.randn(B, N).double()
    torch.testing.assert_close(linear_scan(decay, v, first), linear_scan_reference(decay, v, first))


@pytest.mark.parametrize("t", [1, CHUNK_STEPS, CHUNK_STEPS + 7, 2 * CHUNK_STEPS])
def test_the_future_stays_out(t):
    """Bit for bit, also where the future is NaN, within a chunk and from one to the next."""
    decay, v, first = problem(3 * CHUNK_STEPS + 2, torch.complex64)
    states = linear_scan(decay, v, first)
    (gradient,) = torch.autograd.grad(states[:, :t].abs().sum(), v)
    assert gradient[:, t:].eq(0).all()
    for value in (1e3, torch.nan):
        other = v.detach().clone()
        other[:, t:] = value
        assert torch.equal(linear_scan(decay, other, first)[:, :t], states[:, :t])


@pytest.mark.parametrize("size", [1.0, 1e30])
def test_a_long_sequence_stays_finite(size):
    """Also of a constant and with nearly no decay."""
    decay = torch.tensor([0.0, 1e-30, 0.5j, 0.9999999, 1.0], dtype=torch.complex64, requires_grad=True)
    v = torch.full((1, 1 << 16, 5), size, dtype=torch.complex64)
    states = linear_scan(decay, v, v[:, 0])
    assert torch.view_as_real(states).isfinite().all()
    torch.testing.assert_close(states[0, -1, 2] / size, torch.tensor(1 / (1 - 0.5j)))
    (gradient,) = torch.autograd.grad(states.real.mean(), decay)
    assert torch.view_as_real(gradient).isfinite().all()
