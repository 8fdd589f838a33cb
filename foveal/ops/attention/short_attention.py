"""Attention over short sequences: the keys and values of a head fit in the cache of one CPU core."""

from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.launch import Kernel

MAX_KEYS, MAX_KEYS_CAUSAL = 512, 1024
"""Maximum number of keys for which the kernel is faster.

Time of torch's fused kernel over this kernel's, float32, forward and backward, two threads of an AMD EPYC
with AVX2:

| keys, head width | without mask | causal |
|---|---|---|
| 65, 64 | 1.2 | |
| 64, 32 | | 1.3 to 1.4 |
| 197, 64 | 1.1 to 1.4 | |
| 256, 64 | | 1.9 |
| 512, 64 | 1.1 | 2.1 |
| 1024, 64 | 0.8 | 1.2 |
| 2048, 64 | 0.8 | 0.9 |
"""
MAX_KEYS_PER_QUERY = 4
"""Maximum number of keys for each query for which transposing the keys pays: with 10, torch takes 0.9 of the
kernel's time, with 3, 1.2 times the kernel's time."""
MIN_PRODUCTS = 1 << 21
"""Minimum B H T S K for which calling the kernel pays: with half of it torch takes 0.6 of the kernel's time,
with three times as much 1.4 times."""
QUERY_BLOCK = 32
TASKS_PER_THREAD = 4
"""Tasks for each thread: several, so that no thread waits long for the last one."""

_forward = Kernel("short_attention", "forward")
_backward = Kernel("short_attention", "backward")


def short_attention_usable(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H #T S"] | None,
    causal: bool,
) -> bool:
    """Return whether `short_attention` supports these tensors, and is faster than the other paths."""
    if visible is not None and visible.shape[1:3] != (1, 1):
        return False
    T, S, K = q.shape[2], k.shape[2], q.shape[3]
    worthwhile = (
        min(MAX_KEYS_CAUSAL if causal else MAX_KEYS, MAX_KEYS_PER_QUERY * T) >= S
        and q.numel() * S >= MIN_PRODUCTS
    )
    fits = K % LANES == 0 and all(tensor.stride(-1) == 1 for tensor in (q, k, v))
    return worthwhile and fits and _forward.usable(q, k, v) and _backward.usable(q, k, v)


def short_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B 1 1 S"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "B H T K"]:
    """Compute `ops.attention.dot_product.attention` with a mask of keys, where the queries are the last
    positions.

    Memory is O(T + S).
    """
    B, S = k.shape[0], k.shape[2]
    bias = q.new_full((B if visible is not None else 1, -(-S // LANES) * LANES), -torch.inf)
    bias[:, :S] = 0.0 if visible is None else bias[:, :S].masked_fill(visible[:, 0, 0], 0.0)
    return cast(Tensor, _ShortAttention.apply(q, k, v, bias, causal))  # type: ignore[no-untyped-call]


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, causal: bool) -> Tensor:
        (B, H, T, K), S = q.shape, k.shape[2]
        W, tasks = bias.shape[1], min(B * H, TASKS_PER_THREAD * torch.get_num_threads())
        y, softmax_stats = q.new_empty(B, T, H, K), q.new_empty(B, H, T, 2)
        scratch_size = K * W + S * K + QUERY_BLOCK * (2 * K + W)
        scratch = q.new_empty(tasks, scratch_size)
        inputs = [argument for tensor in (q, k, v) for argument in _with_strides(tensor)]
        _forward(
            tasks,
            *inputs,
            *_with_row_stride(bias),
            y,
            softmax_stats,
            scratch,
            scratch_size,
            H,
            T,
            S,
            K,
            causal,
            B * H,
        )
        ctx.save_for_backward(q, k, v, bias, y, softmax_stats)
        ctx.causal = causal
        return y.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, bias, y, softmax_stats = ctx.saved_tensors
        (B, H, T, K), S = q.shape, k.shape[2]
        W, tasks = bias.shape[1], min(B * H, TASKS_PER_THREAD * torch.get_num_threads())
        dy = dy if dy.stride(-1) == 1 else dy.contiguous()
        dq, dk, dv = q.new_empty(B, T, H, K), k.new_empty(B, S, H, K), v.new_empty(B, S, H, K)
        scratch_size = 4 * K * W + S * K + QUERY_BLOCK * (3 * K + 2 * W)
        scratch = q.new_empty(tasks, scratch_size)
        inputs = [argument for tensor in (q, k, v) for argument in _with_strides(tensor)]
        outputs = (
            *_with_row_stride(bias),
            *_with_strides(dy),
            y,
            softmax_stats,
            dq,
            dk,
            dv,
            scratch,
            scratch_size,
        )
        _backward(tasks, *inputs, *outputs, H, T, S, K, ctx.causal, B * H)
        return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2), None, None


def _with_strides(x: Float[Tensor, "B H T K"]) -> tuple[Tensor, int, int, int]:
    """Return the tensor, and the strides of its rows, heads and positions."""
    return x, x.stride(0), x.stride(1), x.stride(2)


def _with_row_stride(bias: Float[Tensor, "#B W"]) -> tuple[Tensor, int]:
    """Return the bias, and its row stride, which is 0 if all rows share the bias."""
    return bias, bias.shape[1] if len(bias) > 1 else 0
