"""The GRU of `cells.gru_step_reset_after` on a CPU, with one matrix product and one kernel call per step.

torch's own GRU runs a dozen operations per step, and more in the backward pass. One of them is the gradient
of the weights, a thin product that writes the complete matrix in each step. Here that gradient is one product
over all steps.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.launch import Kernel, pad_to_lanes

NUMBERS_PER_TASK = 1 << 12
"""Elements of the state that justify a task of their own."""

_forward = Kernel("gru", "forward")
_backward = Kernel("gru", "backward")


def gru_kernel_usable(b_n: Float[Tensor, " H"]) -> bool:
    """Return whether the kernel can compute with this bias. The matrices may have lower precision."""
    return _forward.usable(b_n) and _backward.usable()


def gru_kernel(
    x: Float[Tensor, "B T D"],
    h: Float[Tensor, "B H"],
    weights: list[Tensor],
    lengths: Int[Tensor, " B"] | None,
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
    """Run `gru_step_reset_after` along the sequence. `weights` is `[W_x, W_h, b_x, b_h]`.

    After a row's length, the state stays the same, and is the output. Under autocast the factors of the
    products are rounded to the lower precision. The state and elementwise operations are in float32.
    """
    W_x, W_h, b_x, b_h = weights
    B, T, _ = x.shape
    H = h.shape[1]
    lengths = torch.full((B,), T) if lengths is None else lengths.long().contiguous()
    # Time is first, so that a step is contiguous.
    projected = F.linear(x.transpose(0, 1).contiguous(), W_x, b_x + F.pad(b_h[: 2 * H], (0, H))).float()
    h, b_n = h.float(), b_h[2 * H :].contiguous()
    if H % LANES:
        projected, W_h = _pad_gates(projected), _pad_gates(pad_to_lanes(W_h).t()).t()
        h, b_n = pad_to_lanes(h), pad_to_lanes(b_n)
    lower = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else W_h.dtype
    keep = torch.is_grad_enabled()
    y, last = _GRU.apply(projected, h, W_h, b_n, lengths, lower, keep)  # type: ignore[no-untyped-call]
    return y[:, :, :H].transpose(0, 1), last[:, :H]


def _pad_gates(x: Float[Tensor, "*B G"]) -> Float[Tensor, "*B F"]:
    """Apply `pad_to_lanes` to each of the three gates, which are concatenated along the last axis."""
    return pad_to_lanes(torch.unflatten(x, -1, (3, -1))).flatten(-2)


class _GRU(torch.autograd.Function):
    """The GRU for `(T, B, 3H)` and `(B, H)`, where `H` is a multiple of the kernel's vector length."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        h: Tensor,
        W_h: Tensor,
        b_n: Tensor,
        lengths: Tensor,
        lower: torch.dtype,
        keep: bool,
    ) -> tuple[Tensor, Tensor]:
        T, B, G = projected.shape
        H = h.shape[1]
        states, saved_gates = h.new_empty(T + 1, B, H), h.new_empty(T if keep else 1, B, 4 * H)
        states[0] = h
        weights, product, tasks = W_h.to(lower), h.new_empty(B, G), _task_count(h)
        for t in range(T):
            _multiply(states[t], weights.t(), product)
            _forward(tasks, projected, product, b_n, states, saved_gates, lengths, B, H, int(keep), t)
        ctx.save_for_backward(weights, states, saved_gates, lengths)
        return states[1:], states[T].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, dlast: Tensor) -> tuple[Tensor | None, ...]:
        weights, states, saved_gates, lengths = ctx.saved_tensors
        T, B, H = dy.shape
        # The kernel orders the gradients as a_n, r, z, p_n. Those of the product and the input overlap.
        weights = weights.roll(H, 0)
        d, dy = torch.empty_like(saved_gates), dy.contiguous()
        dproduct, dprojected = d[:, :, : 3 * H], d[:, :, H:]
        dh, dstate, tasks = dlast.contiguous().clone(), torch.zeros_like(states[0]), _task_count(dlast)
        for t in reversed(range(T)):
            _backward(tasks, dy, dh, dstate, d, states, saved_gates, lengths, B, H, t)
            _multiply(dproduct[t], weights, dstate)
        dW, before = weights.new_empty(weights.shape, dtype=d.dtype), states[:-1].to(weights.dtype)
        _multiply(dproduct.flatten(0, 1).t(), before.flatten(0, 1), dW)
        db_n = d[:, :, :H].sum((0, 1))
        return dprojected, dh + dstate, dW.roll(-H, 0), db_n, None, None, None


def _task_count(h: Float[Tensor, "B H"]) -> int:
    return max(1, h.numel() // NUMBERS_PER_TASK)


def _multiply(a: Float[Tensor, "M K"], b: Float[Tensor, "K N"], out: Float[Tensor, "M N"]) -> None:
    """Compute `out = a b`, with `a` rounded to `b`'s precision."""
    if b.dtype == out.dtype:
        torch.mm(a, b, out=out)
    else:
        out.copy_(torch.mm(a.to(b.dtype), b))
