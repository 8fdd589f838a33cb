"""RWKV's recurrence (version 4; Peng et al. 2023, eq. 16 and appendix D), an exponentially decaying mean.

    y_t = (a_(t-1) + e^(u+k_t) v_t) / (b_(t-1) + e^(u+k_t))
    a_t = e^w a_(t-1) + e^(k_t) v_t,    b_t = e^w b_(t-1) + e^(k_t)

in each channel separately. `w` is negative, the logarithm of the decay per step. `u` is the bonus of the
current input. The exponents may be large, so each sum is stored as a number of moderate size times
e^exponent: the state is `numerator`, `denominator` and their common `exponent`, the largest exponent so far
(decayed). The exponent is only a scale. Every gradient treats it as a constant, which does not change the
gradients of the sums.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, channel_tasks, pad_to_lanes
from foveal.ops.recurrent.cells import run_recurrence

WKVState = tuple[Float[Tensor, "B D"], Float[Tensor, "B D"], Float[Tensor, "B D"]]
"""Numerator, denominator, exponent."""

EMPTY_EXPONENT = -1e38
"""The exponent of an empty sum: e^EMPTY is 0 next to any other, and EMPTY - EMPTY is not NaN."""

SCAN_CHUNK = 32
"""Steps of a chunk in `decayed_sums`."""

CHECKPOINT_STEPS = 64
"""The kernel stores the sums once in this many steps."""

CACHED_NUMBERS = 1 << 17
"""Elements (rows x steps x channels) that are processed at a time on a CPU."""

_forward = Kernel("rwkv", "forward")
_backward = Kernel("rwkv", "backward")


def wkv(
    k: Float[Tensor, "B T D"],
    v: Float[Tensor, "B T D"],
    w: Float[Tensor, " D"],
    u: Float[Tensor, " D"],
    state: WKVState,
    lengths: Int[Tensor, " B"] | None = None,
) -> tuple[Float[Tensor, "B T D"], WKVState]:
    """Compute `wkv_reference` by the fastest path. All tensors have the same dtype, float32 or float64.

    Outputs in the padding are arbitrary, but finite if `k` and `v` are.
    """
    kernel = _forward.usable(k, v, w, u, *state) and _backward.usable()
    if not use_fast_path("wkv", "kernel" if kernel else "scan", kernel or k.shape[1] > 1):
        return wkv_reference(k, v, w, u, state, lengths)
    run = _KernelWKV if kernel else _WKV
    y, *new_state = run.apply(k, v, w, u, *state, lengths)  # type: ignore[no-untyped-call]
    return y, tuple(new_state)


def wkv_reference(
    k: Float[Tensor, "B T D"],
    v: Float[Tensor, "B T D"],
    w: Float[Tensor, " D"],
    u: Float[Tensor, " D"],
    state: WKVState,
    lengths: Int[Tensor, " B"] | None = None,
) -> tuple[Float[Tensor, "B T D"], WKVState]:
    """Run the recurrence step by step. The returned state is the state after each row's length."""

    def step(kv: Float[Tensor, "B E"], state: WKVState) -> tuple[Tensor, WKVState]:
        k, v = kv.chunk(2, 1)
        numerator, denominator, exponent = state
        top = torch.maximum(exponent, u + k).detach()
        past, present = (exponent - top).exp(), (u + k - top).exp()
        y = (past * numerator + present * v) / (past * denominator + present)
        top = torch.maximum(exponent + w, k).detach()
        past, present = (exponent + w - top).exp(), (k - top).exp()
        return y, (past * numerator + present * v, past * denominator + present, top)

    numerator, denominator, exponent = state
    return run_recurrence(step, torch.cat([k, v], 2), (numerator, denominator, exponent.detach()), lengths)


def decayed_sums(
    exponent: Float[Tensor, "B T D"],
    x: Float[Tensor, "2 B T D"],
    w: Float[Tensor, " D"],
    initial: Float[Tensor, "2 B D"],
    initial_exponent: Float[Tensor, "B D"],
) -> tuple[Float[Tensor, "2 B T+1 D"], Float[Tensor, "B T+1 D"]]:
    """Return `s_0 = e^initial_exponent initial`, `s_(t+1) = e^w s_t + e^(exponent_t) x_t`, t < T, and their
    scales.

    Chunks of the sequence run side by side. The sum of each chunk alone is a plain reduction. These sums
    follow the same recurrence with decay `SCAN_CHUNK w`, which gives the state at the start of each chunk.
    The loops therefore run O(log T) times SCAN_CHUNK steps, and the work is linear in T.
    """
    B, T, D = exponent.shape
    single_chunk = T < 2 * SCAN_CHUNK
    C, L = (1, T + 1) if single_chunk else (T // SCAN_CHUNK + 1, SCAN_CHUNK)
    exponent = F.pad(exponent, (0, 0, 0, C * L - T), value=EMPTY_EXPONENT).view(B, C, L, D)
    x = F.pad(x, (0, 0, 0, C * L - T)).view(2, B, C, L, D)
    sums, tops, decayed = torch.empty_like(x), torch.empty_like(exponent), torch.empty_like(exponent)
    if single_chunk:
        sums[:, :, 0, 0], tops[:, 0, 0] = initial, initial_exponent
    else:
        end_exponent = exponent + w * torch.arange(L - 1, -1, -1, dtype=w.dtype, device=w.device)[:, None]
        top = end_exponent.amax(2)
        chunks = (end_exponent.sub_(top[:, :, None]).exp_() * x).sum(3)
        starts, start_exponent = decayed_sums(top, chunks, L * w, initial, initial_exponent)
        sums[:, :, :, 0], tops[:, :, 0] = starts[:, :, :C], start_exponent[:, :C]

    top, *later = tops.unbind(2)
    for e, d, t in zip(exponent.unbind(2), decayed.unbind(2)[1:], later, strict=False):
        torch.add(top, w, out=d)
        top = torch.maximum(d, e, out=t)
    past = decayed[:, :, 1:].sub_(tops[:, :, 1:]).exp_()
    present = (exponent[:, :, :-1] - tops[:, :, 1:]).exp_()
    torch.mul(present, x[:, :, :, :-1], out=sums[:, :, :, 1:])
    s, *rest = sums.unbind(3)
    for a, t in zip(past.unbind(2), rest, strict=True):
        s = t.addcmul_(a, s)
    return sums.view(2, B, C * L, D)[:, :, : T + 1], tops.view(B, C * L, D)[:, : T + 1]


def wkv_forward(
    k: Float[Tensor, "B T D"],
    v: Float[Tensor, "B T D"],
    w: Float[Tensor, " D"],
    u: Float[Tensor, " D"],
    state: WKVState,
    lengths: Int[Tensor, " B"],
) -> tuple[Float[Tensor, "B T D"], WKVState, tuple[Tensor, ...]]:
    """Return the outputs, the state after each row's length, and the tensors to save for `wkv_backward`."""
    numerator, denominator, exponent = state
    x = torch.stack([v, torch.ones_like(v)])
    sums, tops = decayed_sums(k, x, w, torch.stack([numerator, denominator]), exponent)
    top = torch.maximum(tops[:, :-1], k + u)
    past, present = (tops[:, :-1] - top).exp_(), (k + u).sub_(top).exp_()
    total = torch.addcmul(present, past, sums[1, :, :-1])
    y = (past.mul_(sums[0, :, :-1]).addcmul_(present, v)).div_(total)
    rows = torch.arange(k.shape[0], device=k.device)
    new_state = (sums[0, rows, lengths], sums[1, rows, lengths], tops[rows, lengths])
    return y, new_state, (y, sums, tops, top, total)


def wkv_backward(
    k: Float[Tensor, "B T D"],
    v: Float[Tensor, "B T D"],
    w: Float[Tensor, " D"],
    u: Float[Tensor, " D"],
    lengths: Int[Tensor, " B"],
    saved: tuple[Tensor, ...],
    dy: Float[Tensor, "B T D"],
    d_numerator: Float[Tensor, "B D"],
    d_denominator: Float[Tensor, "B D"],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of k, v, w, u, and of the numerator and the denominator of the initial state.

    The gradient of the sums `s_t`, `A_t = e^w A_(t+1) + dy_t / (e^top total)`, is again a decayed sum, from
    the end backwards. The gradient of the last state enters as the input after a row's end.
    """
    y, sums, tops, top, total = saved
    share = dy / total
    x = F.pad(torch.stack([share, -share * y]), (0, 0, 0, 1))
    exponent = F.pad(-top, (0, 0, 0, 1))
    rows = torch.arange(k.shape[0], device=k.device)
    x[0, rows, lengths], x[1, rows, lengths] = d_numerator, d_denominator
    exponent[rows, lengths] = -tops[rows, lengths]
    zeros = torch.zeros_like(x[:, :, 0])
    empty = torch.full_like(zeros[0], EMPTY_EXPONENT)
    dsums, scale = decayed_sums(exponent.flip(1), x.flip(2), w, zeros, empty)
    dsums, scale = dsums.flip(2), scale.flip(1)  # entry t is A_t, the last entry is unused
    dinitial = (tops[:, 0] + scale[:, 0]).exp_() * dsums[:, :, 0]
    dsums, scale = dsums[:, :, 1:-1], scale[:, 1:-1]

    weight = (k + scale).exp_()  # e^k_t times the scale of A_(t+1)
    present = (k + u).sub_(top).exp_() * share
    dv = torch.addcmul(present, weight, dsums[0])
    du = present * (v - y)
    dk = torch.addcmul(du, weight, v * dsums[0] + dsums[1])
    decay = (tops[:, :-1] + w).add_(scale).exp_()
    dw = decay * (sums[:, :, :-1] * dsums).sum(0)
    return dk, dv, dw.sum((0, 1)), du.sum((0, 1)), dinitial[0], dinitial[1]


class _KernelWKV(torch.autograd.Function):
    """The complete sequence by the kernel `kernels.rwkv`."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        *tensors, lengths = inputs
        k, v, w, u, a, b, top = (pad_to_lanes(tensor) for tensor in tensors)
        B, T, D = k.shape
        if lengths is None:
            lengths = torch.full((B,), T)
        a, b, top = a.clone(), b.clone(), top.clone()
        y, shares = torch.empty_like(k), channel_tasks(B, D)
        checkpoints = k.new_empty(B, -(-T // CHECKPOINT_STEPS), D, 3)
        _forward(B * shares, k, v, w, u, a, b, top, y, checkpoints, lengths, T, D, CHECKPOINT_STEPS, shares)
        ctx.save_for_backward(k, v, w, u, y, checkpoints, lengths)
        ctx.width = width = tensors[0].shape[2]
        new_exponent = top[:, :width]
        ctx.mark_non_differentiable(new_exponent)
        return y[:, :, :width], a[:, :width], b[:, :width], new_exponent

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dy: Tensor, d_numerator: Tensor, d_denominator: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        k, v, w, u, y, checkpoints, lengths = ctx.saved_tensors
        B, T, D = k.shape
        dy, d_a, d_b = (
            pad_to_lanes(dy),
            pad_to_lanes(d_numerator).clone(),
            pad_to_lanes(d_denominator).clone(),
        )
        dk, dv, shares = torch.empty_like(k), torch.empty_like(v), channel_tasks(B, D)
        dw, du = k.new_empty(2, B, D)
        scratch = k.new_empty(B * shares * CHECKPOINT_STEPS * 6 * LANES)
        outputs = (dk, dv, dw, du, d_a, d_b, scratch)
        _backward(
            B * shares, k, v, w, u, y, checkpoints, dy, lengths, *outputs, T, D, CHECKPOINT_STEPS, shares
        )
        gradients = (dk, dv, dw.sum(0), du.sum(0), d_a, d_b)
        return *(gradient[..., : ctx.width] for gradient in gradients), None, None


class _WKV(torch.autograd.Function):
    """`wkv_forward` and `wkv_backward` in chunks. On a CPU a chunk fits the cache, and starts from the state
    of the previous one."""

    @staticmethod
    def forward(
        ctx: Any,
        k: Tensor,
        v: Tensor,
        w: Tensor,
        u: Tensor,
        numerator: Tensor,
        denominator: Tensor,
        exponent: Tensor,
        lengths: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        B, T, D = k.shape
        if lengths is None:
            lengths = torch.full((B,), T, device=k.device)
        ctx.size = max(16, CACHED_NUMBERS // (B * D)) if k.device.type == "cpu" else T
        state: WKVState = (numerator, denominator, exponent)
        chunks = []
        for t in range(0, T, ctx.size):
            k_t, v_t, lengths_here = (
                k[:, t : t + ctx.size],
                v[:, t : t + ctx.size],
                lengths.sub(t).clamp(0, ctx.size),
            )
            _, state, saved = wkv_forward(k_t, v_t, w, u, state, lengths_here)
            chunks.append(saved)
        ctx.save_for_backward(k, v, w, u, lengths, *(part for saved in chunks for part in saved))
        ctx.mark_non_differentiable(state[2])
        return torch.cat([y for y, *_ in chunks], 1), *state

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dy: Tensor, d_numerator: Tensor, d_denominator: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        k, v, w, u, lengths, *saved = ctx.saved_tensors
        dk, dv, dw, du = torch.empty_like(k), torch.empty_like(v), torch.zeros_like(w), torch.zeros_like(u)
        for t in reversed(range(0, k.shape[1], ctx.size)):
            chunk = (slice(None), slice(t, t + ctx.size))
            lengths_here, saved_here = lengths.sub(t).clamp(0, ctx.size), tuple(saved[-5:])
            dk[chunk], dv[chunk], dw_t, du_t, d_numerator, d_denominator = wkv_backward(
                k[chunk], v[chunk], w, u, lengths_here, saved_here, dy[chunk], d_numerator, d_denominator
            )
            del saved[-5:]
            dw += dw_t
            du += du_t
        return dk, dv, dw, du, d_numerator, d_denominator, None, None
