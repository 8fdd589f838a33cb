"""A diagonal state space layer: a step loop and a parallel scan under the same contract as any mixer.

Its laws are those of its row in `tests/layers/rows.py`.
"""

import math

import pytest
import torch
from torch import Tensor, nn

from foveal.core.state import detach
from foveal.layers.recurrent import Recurrent
from foveal.ops.dispatch import choose, reference_only
from foveal.ops.padding import after_length, zero_padding

B, T, D, N = 3, 13, 4, 5


def loop(decay: Tensor, v: Tensor, first: Tensor) -> Tensor:
    """`s_t = decay * s_(t-1) + v_t`: decay (N,), v (B, T, N), first (B, N), all complex."""
    states, s = [], first
    for v_t in v.unbind(1):
        s = decay * s + v_t
        states.append(s)
    return torch.stack(states, 1)


def scan(decay: Tensor, v: Tensor, first: Tensor) -> Tensor:
    """`loop` in log2(T) rounds; after round k, s_t is the sum over its last 2^k inputs (Hillis, Steele 1986).

    The combination of (decay^m, v) and (decay^n, w) is (decay^(m+n), w + decay^n v), which is associative.
    """
    s = torch.cat([v[:, :1] + (decay * first)[:, None], v[:, 1:]], 1)
    reach = 1
    while reach < s.shape[1]:
        s = s + torch.cat([torch.zeros_like(s[:, :reach]), decay * s[:, :-reach]], 1)
        decay, reach = decay * decay, 2 * reach
    return s


class StateSpace(nn.Module):
    """`s' = A s + B x`, `y = Re(C s) + D x`, A diagonal, inputs held constant over each step of size `delta`.

    Zero-order hold: `s_t = exp(delta A) s_(t-1) + (exp(delta A) - 1) / A * B x_t` (Gu et al. 2022, S4D).
    Complex numbers are stored as pairs of real ones. A has the real part -exp(log_rate), so it decays.
    """

    bounded = True

    def __init__(self, d_in: int, d_out: int, size: int):
        super().__init__()
        self.d_in, self.d_out, self.size = d_in, d_out, size
        self.log_rate = nn.Parameter(torch.empty(size))
        self.frequency = nn.Parameter(torch.empty(size))
        self.log_delta = nn.Parameter(torch.empty(size))
        self.into = nn.Parameter(torch.empty(size, d_in, 2))
        self.out = nn.Parameter(torch.empty(d_out, size, 2))
        self.skip = nn.Parameter(torch.empty(d_out, d_in))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.log_rate, math.log(0.5))
        nn.init.constant_(self.log_delta, math.log(0.1))
        with torch.no_grad():
            self.frequency.copy_(math.pi * torch.arange(self.size))
        for weight in (self.into, self.out, self.skip):
            nn.init.normal_(weight, std=1 / math.sqrt(self.size))

    def init_state(self, batch, capacity=None, memory=None):
        return {"s": self.into.new_zeros(batch, self.size, 2)}

    def discretised(self) -> tuple[Tensor, Tensor]:
        """The decay of one step (N,), and what it takes of the input (N, D)."""
        A = torch.complex(-self.log_rate.exp(), self.frequency)
        decay = (A * self.log_delta.exp()).exp()
        return decay, ((decay - 1) / A)[:, None] * torch.view_as_complex(self.into)

    def forward(self, x, state=None, *, lengths=None):
        x = zero_padding(x, lengths)
        first = self.init_state(x.shape[0])["s"] if state is None else state["s"]
        decay, into = self.discretised()
        run = scan if choose("state_space", "scan", True) else loop
        states = run(decay, x.to(into.dtype) @ into.T, torch.view_as_complex(first))
        y = (states @ torch.view_as_complex(self.out).T).real + x @ self.skip.T
        if lengths is None:
            lengths = torch.full((x.shape[0],), x.shape[1])
        pairs = torch.view_as_real(states).flatten(2)
        last = after_length(first.flatten(1), pairs, lengths).view_as(first)
        return zero_padding(y, lengths), {"s": last}


def layer() -> StateSpace:
    made = StateSpace(D, 3, N).double()
    for parameter in made.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    return made


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 8, T])
@pytest.mark.parametrize("ragged", [False, True])
def test_scan_equals_loop(size, ragged):
    """In outputs, final state and all gradients, from any state."""
    made, found = layer(), []
    x = torch.randn(B, size, D, dtype=torch.float64, requires_grad=True)
    start = torch.randn(B, N, 2, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([size, size // 2, 0]) if ragged else None
    weights = torch.randn(B, size, 3, dtype=torch.float64), torch.randn(B, N, 2, dtype=torch.float64)
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
    decay, into = made.discretised()
    A = torch.complex(-made.log_rate.exp(), made.frequency)
    B_full, delta = torch.view_as_complex(made.into), made.log_delta.exp()
    for n in range(N):
        generator = torch.zeros(1 + D, 1 + D, dtype=A.dtype)
        generator[0, 0], generator[0, 1:] = A[n], B_full[n]
        whole = torch.linalg.matrix_exp(generator * delta[n])
        close(whole[0, 0], decay[n])
        close(whole[0, 1:], into[n])


def test_it_remembers_no_longer_than_it_decays():
    """Bounded at any length: a constant input leads to the fixed point `-B / A x`."""
    made = layer()
    with torch.no_grad():
        y, state = made(torch.ones(1, 4000, D, dtype=torch.float64))
        A = torch.complex(-made.log_rate.exp(), made.frequency)
        fixed = -(torch.view_as_complex(made.into).sum(1) / A)
        close(torch.view_as_complex(state["s"])[0], fixed)
        again, _ = made(torch.ones(1, 1, D, dtype=torch.float64), detach(state))
    close(again[:, 0], y[:, -1])
    assert not isinstance(made, Recurrent), "a scan needs no cell"
