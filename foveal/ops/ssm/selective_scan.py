"""Mamba's selective scan, a linear recurrence whose decay, input and output depend on the input.

`E` is the inner width (channels), `N` the state size of each channel. Channels do not mix here.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.core.runtime import without_autocast
from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, channel_tasks, pad_to_lanes

CHECKPOINT_STEPS = 8
"""The kernel stores one state in this many steps, so that the states recomputed in the backward pass stay in
the L1 cache."""

_forward = Kernel("selective_scan", "forward")
_backward = Kernel("selective_scan", "backward")


def selective_scan(
    u: Float[Tensor, "B T E"],
    delta: Float[Tensor, "B T E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B T N"],
    C: Float[Tensor, "B T N"],
    initial: Float[Tensor, "B E N"],
) -> tuple[Float[Tensor, "B T E"], Float[Tensor, "B E N"]]:
    """Compute `selective_scan_reference` by the fastest path, in the precision of `A`.

    A state is multiplied thousands of times, so the state has A's precision even under autocast.
    """
    with without_autocast(u.device):
        u, delta, B, C, initial = (tensor.to(A.dtype) for tensor in (u, delta, B, C, initial))
        kernel = _forward.usable(A) and _backward.usable()
        if not use_fast_path("selective_scan", "kernel" if kernel else "chunks", True):
            return selective_scan_reference(u, delta, A, B, C, initial)
        path = (kernel_forward, kernel_backward) if kernel else (chunked_forward, chunked_backward)
        return _SelectiveScan.apply(*path, u, delta, A, B, C, initial)  # type: ignore[no-untyped-call]


def selective_scan_reference(
    u: Float[Tensor, "B T E"],
    delta: Float[Tensor, "B T E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B T N"],
    C: Float[Tensor, "B T N"],
    initial: Float[Tensor, "B E N"],
) -> tuple[Float[Tensor, "B T E"], Float[Tensor, "B E N"]]:
    """Return the outputs `y_t = C_t h_t` and the last state (Gu and Dao 2023, algorithm 2).

    `h_t = exp(delta_t A) h_(t-1) + delta_t B_t u_t`. A is diagonal, and its discretization is exact
    (zero-order hold). The discretization of B is the simplified `delta B` of the authors' code, not the
    paper's equation 4. `delta` is not negative. Where `delta` is 0, the state stays the same bit for bit.
    """
    h, outputs = initial, []
    for u_t, delta_t, B_t, C_t in zip(u.unbind(1), delta.unbind(1), B.unbind(1), C.unbind(1), strict=True):
        decay = (delta_t[:, :, None] * A).exp()
        h = decay * h + (delta_t * u_t)[:, :, None] * B_t[:, None, :]
        outputs.append((h * C_t[:, None, :]).sum(2))
    return torch.stack(outputs, 1), h


def kernel_forward(
    u: Float[Tensor, "B T E"],
    delta: Float[Tensor, "B T E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B T N"],
    C: Float[Tensor, "B T N"],
    initial: Float[Tensor, "B E N"],
) -> tuple[Float[Tensor, "B T E"], Float[Tensor, "B E N"], Float[Tensor, "B G S N L"]]:
    """Compute `chunked_forward` with `kernels.selective_scan`: G groups of L channels, one SIMD vector per
    group."""
    rows, T, E = u.shape
    N = A.shape[1]
    u, delta, B, C = pad_to_lanes(u), pad_to_lanes(delta), B.contiguous(), C.contiguous()
    rates, state = _group_channels(A / math.log(2)), _group_channels(initial)
    checkpoints = state.new_empty(rows, state.shape[1], -(-T // CHECKPOINT_STEPS), N, LANES)
    y, shares = torch.empty_like(u), channel_tasks(rows, u.shape[2])
    _forward(
        rows * shares,
        u,
        delta,
        rates,
        B,
        C,
        state,
        y,
        checkpoints,
        T,
        u.shape[2],
        N,
        CHECKPOINT_STEPS,
        shares,
    )
    return y[:, :, :E], _ungroup_channels(state, E).contiguous(), checkpoints


def kernel_backward(
    dy: Float[Tensor, "B T E"],
    dlast: Float[Tensor, "B E N"],
    u: Float[Tensor, "B T E"],
    delta: Float[Tensor, "B T E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B T N"],
    C: Float[Tensor, "B T N"],
    checkpoints: Float[Tensor, "B G S N L"],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Compute `chunked_backward` with `kernels.selective_scan`."""
    rows, T, E = u.shape
    N = A.shape[1]
    dy, u, delta, B, C = (
        pad_to_lanes(dy),
        pad_to_lanes(u),
        pad_to_lanes(delta),
        B.contiguous(),
        C.contiguous(),
    )
    rates, dstate, shares = (
        _group_channels(A / math.log(2)),
        _group_channels(dlast),
        channel_tasks(rows, u.shape[2]),
    )
    du, ddelta, dA = torch.empty_like(u), torch.empty_like(u), torch.zeros_like(dstate)
    dB, dC = u.new_empty(2, shares, rows, T, N)
    scratch = u.new_empty(rows * shares * 4 * CHECKPOINT_STEPS * N * LANES)
    outputs = (du, ddelta, dA, dB, dC, dstate, scratch)
    sizes = (T, u.shape[2], N, CHECKPOINT_STEPS, shares, rows)
    _backward(rows * shares, u, delta, rates, B, C, checkpoints, dy, *outputs, *sizes)
    dA, dinitial = _ungroup_channels(dA.sum(0), E), _ungroup_channels(dstate, E)
    return du[:, :, :E], ddelta[:, :, :E], dA, dB.sum(0), dC.sum(0), dinitial


def _group_channels(x: Float[Tensor, "*B E N"]) -> Float[Tensor, "*B G N L"]:
    """Return a copy in which the states of a group of channels are contiguous. The last group is padded with
    zeros."""
    missing = -x.shape[-2] % LANES
    x = F.pad(x, (0, 0, 0, missing)) if missing else x
    return torch.unflatten(x, -2, (-1, LANES)).transpose(-1, -2).clone(memory_format=torch.contiguous_format)


def _ungroup_channels(x: Float[Tensor, "*B G N L"], E: int) -> Float[Tensor, "*B E N"]:
    """Undo `_group_channels`."""
    return x.transpose(-1, -2).flatten(-3, -2)[..., :E, :]


class _SelectiveScan(torch.autograd.Function):
    """Either path as one autograd operation."""

    @staticmethod
    def forward(
        ctx: Any,
        forward: Callable[..., tuple[Tensor, Tensor, Tensor]],
        backward: Callable[..., tuple[Tensor, ...]],
        *inputs: Tensor,
    ) -> tuple[Tensor, Tensor]:
        y, last, checkpoints = forward(*inputs)
        ctx.save_for_backward(*inputs[:-1], checkpoints)
        ctx.path_back = backward
        return y, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *ctx.path_back(*gradients, *ctx.saved_tensors)


def chunked_forward(
    u: Float[Tensor, "B T E"],
    delta: Float[Tensor, "B T E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B T N"],
    C: Float[Tensor, "B T N"],
    initial: Float[Tensor, "B E N"],
) -> tuple[Float[Tensor, "B T E"], Float[Tensor, "B E N"], Float[Tensor, "S B N E"]]:
    """Return the outputs, the last state, and, for `chunked_backward`, the state before each chunk of time.

    The decays and inputs of a chunk are computed at once. A step is then one addition in place, and the
    outputs are one product. In memory, time is the first axis and channels are the last, so a step is
    contiguous.
    """
    y, h = torch.empty_like(u), initial.transpose(1, 2)
    steps = _chunk_steps(initial)
    checkpoints = h.new_empty(-(-u.shape[1] // steps), *h.shape)
    decay, states = h.new_empty(2, steps, *h.shape)
    u, delta, B, C = _time_first(u, delta, B, C)
    A = A.t().contiguous()
    for number, chunk in enumerate(_chunks(u.shape[0], steps)):
        checkpoints[number] = h
        h_s = states[: chunk.stop - chunk.start]
        _run_chunk(u[chunk], delta[chunk], A, B[chunk], checkpoints[number], decay[: len(h_s)], h_s)
        y.transpose(0, 1)[chunk] = (C[chunk][:, :, None, :] @ h_s).squeeze(2)
        h = h_s[-1]
    return y, h.transpose(1, 2).contiguous(), checkpoints


def chunked_backward(
    dy: Float[Tensor, "B T E"],
    dlast: Float[Tensor, "B E N"],
    u: Float[Tensor, "B T E"],
    delta: Float[Tensor, "B T E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B T N"],
    C: Float[Tensor, "B T N"],
    checkpoints: Float[Tensor, "S B N E"],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of `(u, delta, A, B, C, initial)`, from those of the outputs and of the last
    state.

    From the last chunk to the first, the states are recomputed from the state stored before the chunk. Their
    gradients `g_t = C_t dy_t + decay_(t+1) g_(t+1)` are computed in the same way, and all other gradients as
    products over the chunk.
    """
    du, ddelta, dB, dC = (torch.empty_like(chunk) for chunk in (u, delta, B, C))
    dA = A.new_zeros(A.shape[::-1])
    g_next = dlast.transpose(1, 2).contiguous()
    steps = _chunk_steps(dlast)
    decay, states, g, workspace = checkpoints.new_empty(4, steps, *checkpoints.shape[1:])
    dy, u, delta, B, C = _time_first(dy, u, delta, B, C)
    A = A.t().contiguous()
    for number, chunk in reversed(list(enumerate(_chunks(u.shape[0], steps)))):
        u_s, delta_s, B_s, dy_s = (tensor[chunk] for tensor in (u, delta, B, dy))
        a, h, g_s, product = (buffer[: len(u_s)] for buffer in (decay, states, g, workspace))
        _run_chunk(u_s, delta_s, A, B_s, checkpoints[number], a, h)
        torch.mul(C[chunk][:, :, :, None], dy_s[:, :, None, :], out=g_s)
        g_s[-1] += g_next
        steps_a, steps_g = a.unbind(0), g_s.unbind(0)
        for t in range(len(g_s) - 2, -1, -1):
            torch.addcmul(steps_g[t], steps_a[t + 1], steps_g[t + 1], out=steps_g[t])
        torch.mul(steps_a[0], steps_g[0], out=g_next)

        inputs = (delta_s * u_s)[:, :, None, :]
        dC.transpose(0, 1)[chunk] = torch.mul(h, dy_s[:, :, None, :], out=product).sum(3)
        dB.transpose(0, 1)[chunk] = torch.mul(g_s, inputs, out=product).sum(3)
        dinputs = (B_s[:, :, None, :] @ g_s).squeeze(2)
        # The gradient of delta_t A, the logarithm of the decay: g_t decay_t h_(t-1).
        dlog = a.mul_(g_s)
        dlog[0] *= checkpoints[number]
        dlog[1:] *= h[:-1]
        du.transpose(0, 1)[chunk] = dinputs * delta_s
        ddelta.transpose(0, 1)[chunk] = dinputs * u_s + torch.mul(dlog, A, out=product).sum(2)
        dA += dlog.mul_(delta_s[:, :, None, :]).sum((0, 1))
    return du, ddelta, dA.t(), dB, dC, g_next.transpose(1, 2)


def _run_chunk(
    u: Float[Tensor, "T B E"],
    delta: Float[Tensor, "T B E"],
    A: Float[Tensor, "N E"],
    B: Float[Tensor, "T B N"],
    h: Float[Tensor, "B N E"],
    decay: Float[Tensor, "T B N E"],
    states: Float[Tensor, "T B N E"],
) -> None:
    """Fill `decay` and `states`, from the state `h` before the chunk.

    On a CPU, exp2 takes a third of exp's time.
    """
    torch.mul(delta[:, :, None, :], A / math.log(2), out=decay).exp2_()
    torch.mul((delta * u)[:, :, None, :], B[:, :, :, None], out=states)
    for decay_t, state_t in zip(decay.unbind(0), states.unbind(0), strict=True):
        h = torch.addcmul(state_t, decay_t, h, out=state_t)


def _time_first(*parts: Float[Tensor, "B T _"]) -> list[Tensor]:
    """Return copies with time as the first axis."""
    return [part.transpose(0, 1).contiguous() for part in parts]


def _chunk_steps(state: Float[Tensor, "B E N"]) -> int:
    """Return the number of steps per chunk that fits in a processor's cache, at least 4 and at most 64."""
    return max(4, min(64, 2**20 // max(state.numel(), 1)))


def _chunks(T: int, steps: int) -> Iterator[slice]:
    """Return the slices of time."""
    return (slice(start, min(start + steps, T)) for start in range(0, T, steps))
