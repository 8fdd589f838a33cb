"""The linear recurrence with a constant diagonal, `s_t = decay * s_(t-1) + v_t`, along the complete sequence.

`N` is the number of states, each with its own recurrence. Decay, inputs and states are complex or real.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Complex, Float, Inexact
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, channel_tasks, pad_to_lanes

CHUNK_STEPS = 32
"""Sequential steps in a chunk (32 was fastest, 16 and 64 close)."""

_forward = Kernel("linear_scan", "forward")
_backward = Kernel("linear_scan", "backward")


def linear_scan(
    decay: Inexact[Tensor, " N"], v: Inexact[Tensor, "B T N"], initial: Inexact[Tensor, "B N"]
) -> Inexact[Tensor, "B T N"]:
    """Return all states of the recurrence, by the fastest path."""
    kernel = v.dtype == torch.complex64 and _forward.usable(torch.view_as_real(v)) and _backward.usable()
    if not use_fast_path("linear_scan", "kernel" if kernel else "chunks", True):
        return linear_scan_reference(decay, v, initial)
    path = (kernel_scan, kernel_scan_gradients) if kernel else (chunked_scan, chunked_scan_gradients)
    return _LinearScan.apply(*path, decay, v, initial)  # type: ignore[no-untyped-call]


def linear_scan_reference(
    decay: Inexact[Tensor, " N"], v: Inexact[Tensor, "B T N"], initial: Inexact[Tensor, "B N"]
) -> Inexact[Tensor, "B T N"]:
    """Return `s_t = decay * s_(t-1) + v_t` for t = 1..T, from `s_0 = initial` (Smith et al. 2023, section
    2.2)."""
    states, s = [], initial
    for v_t in v.unbind(1):
        s = decay * s + v_t
        states.append(s)
    return torch.stack(states, 1)


def chunked_scan(
    decay: Inexact[Tensor, " N"],
    v: Inexact[Tensor, "B T N"],
    initial: Inexact[Tensor, "B N"],
    backwards: bool = False,
) -> Inexact[Tensor, "B T N"]:
    """Compute `linear_scan_reference` with linear work, but only about `C log T / log C` sequential steps,
    where C is `CHUNK_STEPS`.

    The sequence is split into chunks, which run in parallel, each from a state of zero. Their final states
    form a shorter sequence with the same recurrence, with the decay of a whole chunk. A scan of this shorter
    sequence gives the state that enters each chunk. At the chunk's i-th step this state has decayed by
    `decay^i`. No value is ever multiplied by a later one, so a NaN in later inputs is harmless.

    `backwards` runs from the last step to the first. Gradients are not recorded.
    """
    T = v.shape[1]
    L = min(CHUNK_STEPS, T)
    s = F.pad(v, (0, 0, 0, -T % L)) if T % L else v.clone()
    s = s.view(len(s), -1, L, len(decay))
    steps = s.unbind(2)[::-1] if backwards else s.unbind(2)
    if s.shape[1] == 1:
        steps[0][:, 0].addcmul_(decay, initial)
    for previous, current in pairwise(steps):
        current.addcmul_(decay, previous)
    if s.shape[1] > 1:
        powers = decay.expand(L, -1).cumprod(0)
        ends = steps[-1][:, 1:] if backwards else steps[-1][:, :-1]
        ends = chunked_scan(powers[-1], ends, initial, backwards)
        entering = torch.cat([ends, initial[:, None]] if backwards else [initial[:, None], ends], 1)
        s.addcmul_(powers.flip(0) if backwards else powers, entering[:, :, None])
    return s.flatten(1, 2)[:, :T]


def chunked_scan_gradients(
    decay: Inexact[Tensor, " N"],
    states: Inexact[Tensor, "B T N"],
    initial: Inexact[Tensor, "B N"],
    gradient: Inexact[Tensor, "B T N"],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of decay, v and initial, from the gradient of the states.

    `a_t = gradient_t + conj(decay) a_(t+1)` is the recurrence run backwards. The gradient of decay is the sum
    of `a_t conj(s_(t-1))`, that of v is `a`, and that of initial is `conj(decay) a_1`.
    """
    conjugate = decay.conj().resolve_conj()
    a = chunked_scan(conjugate, gradient, torch.zeros_like(initial), backwards=True)
    # vecdot conjugates its first argument without a copy. A conjugate copy costs more than the entire scan.
    ddecay = torch.linalg.vecdot(states[:, :-1], a[:, 1:], dim=1) + initial.conj() * a[:, 0]
    return ddecay.sum(0), a, conjugate * a[:, 0]


def kernel_scan(
    decay: Complex[Tensor, " N"], v: Complex[Tensor, "B T N"], initial: Complex[Tensor, "B N"]
) -> Complex[Tensor, "B T N"]:
    """Compute `chunked_scan` with `kernels.linear_scan`."""
    B, T, N = v.shape
    real, signed_imaginary = _real_imaginary_factors(decay)
    inputs, start = _as_pairs(v), _as_pairs(initial)
    states, width = torch.empty_like(inputs), inputs.shape[2]
    shares = channel_tasks(B, width)
    _forward(B * shares, real, signed_imaginary, inputs, start, states, T, width, shares)
    return _as_complex(states, N)


def kernel_scan_gradients(
    decay: Complex[Tensor, " N"],
    states: Complex[Tensor, "B T N"],
    initial: Complex[Tensor, "B N"],
    gradient: Complex[Tensor, "B T N"],
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `chunked_scan_gradients` with `kernels.linear_scan`."""
    B, T, N = states.shape
    real, signed_imaginary = _real_imaginary_factors(decay)
    dstates, start, state_pairs = _as_pairs(gradient), _as_pairs(initial), _as_pairs(states)
    a_pairs, width = torch.empty_like(dstates), dstates.shape[2]
    straight, crossed = dstates.new_zeros(2, B, width)
    shares = channel_tasks(B, width)
    _backward(
        B * shares,
        real,
        signed_imaginary,
        dstates,
        start,
        state_pairs,
        a_pairs,
        straight,
        crossed,
        T,
        width,
        shares,
    )
    straight_sum, crossed_sum = straight.sum(0).view(-1, 2)[:N], crossed.sum(0).view(-1, 2)[:N]
    ddecay = torch.complex(straight_sum[:, 0] + straight_sum[:, 1], crossed_sum[:, 1] - crossed_sum[:, 0])
    a = _as_complex(a_pairs, N)
    return ddecay, a, decay.conj() * a[:, 0]


def _real_imaginary_factors(decay: Complex[Tensor, " N"]) -> tuple[Float[Tensor, " M"], Float[Tensor, " M"]]:
    """Return the real part of each decay twice, and its imaginary part with a minus and a plus sign."""
    real, imaginary = decay.real, decay.imag
    pairs = torch.stack([real, real], 1), torch.stack([-imaginary, imaginary], 1)
    return pad_to_lanes(pairs[0].flatten()), pad_to_lanes(pairs[1].flatten())


def _as_pairs(x: Complex[Tensor, "*B N"]) -> Float[Tensor, "*B M"]:
    """Return real and imaginary parts as neighbors on the last axis."""
    return pad_to_lanes(torch.view_as_real(x.resolve_conj()).flatten(-2))


def _as_complex(pairs: Float[Tensor, "B T M"], size: int) -> Complex[Tensor, "B T N"]:
    """Return complex numbers from pairs."""
    return torch.view_as_complex(pairs.view(*pairs.shape[:2], -1, 2)[:, :, :size])


class _LinearScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scan: Callable[..., Tensor],
        gradients: Callable[..., tuple[Tensor, Tensor, Tensor]],
        decay: Tensor,
        v: Tensor,
        initial: Tensor,
    ) -> Tensor:
        ctx.gradients = gradients
        states = scan(decay, v, initial)
        ctx.save_for_backward(decay, states, initial)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor, Tensor, Tensor]:
        decay, states, first = ctx.saved_tensors
        return None, None, *ctx.gradients(decay, states, first, gradient)
