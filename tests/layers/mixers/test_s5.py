"""S5: exact discretisation, HiPPO's first eigenvalues. Its laws are in `rows.py`."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.runtime import autocast
from foveal.core.state import detach_state
from foveal.layers.mixers.s5 import S5, STEP_RANGE, hippo_normal
from foveal.ops.jit.dispatch import reference_only
from tests.support.gradients import gradient_of

B, T, D, N = 3, 70, 4, 5


def layer() -> S5:
    made = S5(D, N, 1).double()
    for parameter in made.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    return made


def matrices(made: S5) -> tuple[Tensor, Tensor]:
    return torch.complex(-made.log_rate.exp(), made.frequency), torch.complex(*made.into.unbind(1))


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("ragged", [False, True])
def test_chunks_equal_the_loop(ragged):
    """In outputs, final state and all gradients, from any state, over several chunks of the scan."""
    made, found = layer(), []
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    start = torch.randn(B, N, 2, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([T, T // 2, 0]) if ragged else None
    weights = torch.randn(B, T, D, dtype=torch.float64), torch.randn_like(start)
    for reference in (True, False):
        if reference:
            with reference_only():
                y, last = made(x, {"s": start}, lengths=lengths)
        else:
            y, last = made(x, {"s": start}, lengths=lengths)
        loss = (y * weights[0]).sum() + (last["s"] * weights[1]).sum()
        found.append([y, last["s"], *torch.autograd.grad(loss, [x, start, *made.parameters()])])
    for a, b in zip(*found, strict=True):
        close(a, b)


def test_zero_order_hold_solves_the_equation():
    """Against the matrix exponential of `[[A, B x], [0, 0]]`, which holds the input constant by itself."""
    made = layer()
    decay, taken = made.discretized()
    A, B_full = matrices(made)
    for n, step in enumerate(made.log_step.exp()):
        generator = torch.zeros(1 + D, 1 + D, dtype=A.dtype)
        generator[0, 0], generator[0, 1:] = A[n], B_full[n]
        whole = torch.linalg.matrix_exp(generator * step)
        close(whole[0, 0], decay[n])
        close(whole[0, 1:], taken[n] * B_full[n])


def test_a_short_step_is_exact_too():
    """`exp(z) - 1` loses every digit in float32 at 1e-8; what a step takes of the input is then `delta B`."""
    made = S5(D, N, 1)
    nn.init.constant_(made.log_step, math.log(1e-8))
    _, taken = made.discretized()
    torch.testing.assert_close(taken, torch.full_like(taken, 1e-8), rtol=1e-5, atol=0)


def test_it_remembers_no_longer_than_it_decays():
    """Bounded at any length: a constant input leads to the fixed point `-B / A x`."""
    made = layer()
    with torch.no_grad():
        y, state = made(torch.ones(1, 4000, D, dtype=torch.float64))
        A, into = matrices(made)
        close(torch.view_as_complex(state["s"])[0], -(into.sum(1) / A))
        again, _ = made(torch.ones(1, 1, D, dtype=torch.float64), detach_state(state))
    close(again[:, 0], y[:, -1])


def test_it_is_the_real_system_of_hippo():
    """Steps of `s' = A s + B x`, `y = C s + D x` with real matrices in the full basis, then the gate."""
    made, step = layer(), 0.3
    values, vectors = hippo_normal(2 * N)
    into, out = torch.randn(2 * N, D, dtype=torch.float64), torch.randn(D, 2 * N, dtype=torch.float64)
    with torch.no_grad():
        made.log_rate.fill_(math.log(0.5))
        made.frequency.copy_(values.imag)
        made.log_step.fill_(math.log(step))
        made.into.copy_(torch.view_as_real(vectors.mH @ into.to(vectors.dtype)).transpose(1, 2))
        made.out.copy_(torch.view_as_real(out.to(vectors.dtype) @ vectors))
        x = torch.randn(1, 6, D, dtype=torch.float64)
        y, _ = made(x)
    A = torch.from_numpy(numpy_hippo_normal(2 * N))
    decay, s = torch.linalg.matrix_exp(step * A), torch.zeros(2 * N, dtype=torch.float64)
    for t in range(6):
        s = decay @ s + torch.linalg.solve(A, (decay - torch.eye(2 * N)) @ into @ x[0, t])
        g = F.gelu(out @ s + made.feedthrough * x[0, t])
        close(y[0, t], g * (made.gate.weight @ g + made.gate.bias).sigmoid())


def numpy_hippo_normal(size: int) -> np.ndarray:
    """HiPPO-LegS (Gu et al. 2020, eq. of theorem 2) plus the rank-one term that makes it normal."""
    A = np.zeros((size, size))
    for n in range(size):
        for k in range(n + 1):
            A[n, k] = -(n + 1) if n == k else -math.sqrt((2 * n + 1) * (2 * k + 1))
    p = np.sqrt(np.arange(size) + 0.5)
    return A + np.outer(p, p)


@pytest.mark.parametrize("blocks", [1, 3])
def test_first_eigenvalues(blocks):
    """Those of HiPPO-N with positive imaginary part, the real part -1/2, once a block."""
    made = S5(D, 3 * blocks, blocks).double()
    made.reset_parameters()
    every = np.linalg.eigvals(numpy_hippo_normal(6))
    np.testing.assert_allclose(every.real, -0.5, atol=1e-12)
    expected = np.tile(np.sort(every.imag[every.imag > 0]), blocks)
    A, _ = matrices(made)
    np.testing.assert_allclose(A.detach().real.numpy(), -0.5, atol=1e-12)
    np.testing.assert_allclose(A.detach().imag.numpy(), expected, rtol=1e-10)


def test_first_weights():
    made = S5(200, 64, 4)
    steps = made.log_step.detach()
    assert steps.min() > math.log(STEP_RANGE[0])
    assert steps.max() < math.log(STEP_RANGE[1])
    assert abs(float(steps.mean()) - sum(map(math.log, STEP_RANGE)) / 2) < 0.6
    for weight, fan_in in ((made.into, 200), (made.out, 128)):
        # A unit vector's product with real normal numbers: half the variance in each part.
        assert abs(float(weight.detach().std()) * math.sqrt(2 * fan_in) - 1) < 0.05
    assert abs(float(made.feedthrough.detach().std()) - 1) < 0.2
    assert abs(float(made.gate.weight.detach().std()) / 0.02 - 1) < 0.05
    assert made.gate.bias.eq(0).all()


def test_the_scan_stays_in_full_precision_under_autocast():
    made, x = S5(D, 4, 2), torch.randn(2, 5, D)
    with autocast(torch.device("cpu"), "bfloat16"):
        y, state = made(x, lengths=torch.tensor([5, 0]))
        y, state = made(x.bfloat16(), state)
        y.sum().backward()
    assert state["s"].dtype == torch.float32
    assert all(gradient_of(parameter).isfinite().all() for parameter in made.parameters())


def test_states_that_blocks_do_not_divide():
    with pytest.raises(ValueError, match="10 states are not a multiple of 4 blocks"):
        S5(D, 10, 4)
