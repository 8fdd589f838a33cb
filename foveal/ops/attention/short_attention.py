"""Attention over sequences so short that a head's keys and values stay in the cache of a core."""

from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.launch import Kernel

MAX_KEYS, MAX_KEYS_CAUSAL = 512, 1024
"""Keys up to which the kernel pays.

Time of torch's fused kernel over it, float32, forward and backward, two threads of an AMD EPYC with AVX2:

| keys, head width | all see all | causal |
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
"""Keys for each query up to which turning the keys around pays: with 10 torch's takes 0.9 of the time, with 3
1.2 times."""
MIN_PRODUCTS = 1 << 21
"""B H T S K from which calling the kernel pays: half of that takes torch 0.6 of the time, three times as much
1.4 times."""
QUERY_BLOCK = 32
TASKS_PER_THREAD = 4
"""For each thread, so that none waits long for the last."""

_forward = Kernel("short_attention", "forward")
_backward = Kernel("short_attention", "backward")


def short_attention_usable(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H #T S"] | None,
    causal: bool,
) -> bool:
    """Whether `short_attention` can compute with these, and is worth it."""
    if visible is not None and visible.shape[1:3] != (1, 1):
        return False
    T, S, K = q.shape[2], k.shape[2], q.shape[3]
    pays = (
        min(MAX_KEYS_CAUSAL if causal else MAX_KEYS, MAX_KEYS_PER_QUERY * T) >= S
        and q.numel() * S >= MIN_PRODUCTS
    )
    fits = K % LANES == 0 and all(part.stride(-1) == 1 for part in (q, k, v))
    return pays and fits and _forward.usable(q, k, v) and _backward.usable(q, k, v)


def short_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B 1 1 S"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "B H T K"]:
    """`ops.attention.dot_product.dot_product` with a mask of keys, the queries at the keys' end. Memory O(T + S)."""
    B, S = k.shape[0], k.shape[2]
    bias = q.new_full((B if visible is not None else 1, -(-S // LANES) * LANES), -torch.inf)
    bias[:, :S] = 0.0 if visible is None else bias[:, :S].masked_fill(visible[:, 0, 0], 0.0)
    return cast(Tensor, _ShortAttention.apply(q, k, v, bias, causal))  # type: ignore[no-untyped-call]


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, causal: bool) -> Tensor:
        (B, H, T, K), S = q.shape, k.shape[2]
        W, tasks = bias.shape[1], min(B * H, TASKS_PER_THREAD * torch.get_num_threads())
        y, kept = q.new_empty(B, T, H, K), q.new_empty(B, H, T, 2)
        room = K * W + S * K + QUERY_BLOCK * (2 * K + W)
        scratch = q.new_empty(tasks, room)
        inputs = [word for part in (q, k, v) for word in _with_strides(part)]
        _forward(tasks, *inputs, *_with_row_stride(bias), y, kept, scratch, room, H, T, S, K, causal, B * H)
        ctx.save_for_backward(q, k, v, bias, y, kept)
        ctx.causal = causal
        return y.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, bias, y, kept = ctx.saved_tensors
        (B, H, T, K), S = q.shape, k.shape[2]
        W, tasks = bias.shape[1], min(B * H, TASKS_PER_THREAD * torch.get_num_threads())
        dy = dy if dy.stride(-1) == 1 else dy.contiguous()
        dq, dk, dv = q.new_empty(B, T, H, K), k.new_empty(B, S, H, K), v.new_empty(B, S, H, K)
        room = 4 * K * W + S * K + QUERY_BLOCK * (3 * K + 2 * W)
        scratch = q.new_empty(tasks, room)
        inputs = [word for part in (q, k, v) for word in _with_strides(part)]
        given = (*_with_row_stride(bias), *_with_strides(dy), y, kept, dq, dk, dv, scratch, room)
        _backward(tasks, *inputs, *given, H, T, S, K, ctx.causal, B * H)
        return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2), None, None


def _with_strides(x: Float[Tensor, "B H T K"]) -> tuple[Tensor, int, int, int]:
    """It, and how far its rows, heads and places are apart."""
    return x, x.stride(0), x.stride(1), x.stride(2)


def _with_row_stride(bias: Float[Tensor, "#B W"]) -> tuple[Tensor, int]:
    """It, and how far the biases of two rows are apart: they may share one."""
    return bias, bias.shape[1] if len(bias) > 1 else 0
