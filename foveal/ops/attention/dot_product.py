"""Dot-product attention, `softmax(Q K^T / sqrt(K)) V` (Vaswani et al. 2017, equation 1), and its masks."""

import math
from collections.abc import Iterator
from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.core.runtime import without_autocast
from foveal.core.torch_private import (
    cpu_flash_attention,
    cpu_flash_attention_backward,
    has_cpu_flash_attention,
    softmax_backward,
)
from foveal.ops.attention import short_attention as short
from foveal.ops.jit.dispatch import use_fast_path

MAX_PRODUCT_KEYS, MAX_PRODUCT_KEYS_PER_WIDTH = 512, 8
"""In bfloat16 on a CPU plain products are used up to 512 keys, and up to 8 times the head's width.

There the fused kernel is slow, above all its backward pass. Time of plain products over the kernel's, forward
and backward, one thread of an AVX-512 machine with bfloat16 products:

| head width | 32 keys | 64 | 128 | 256 | 512 |
|---|---|---|---|---|---|
| 32 | 0.15 | 0.27 | 0.31 | 0.92 | 1.14 |
| 64 | 0.16 | 0.25 | 0.24 | 0.46 | 0.52 |

In float32 torch's kernel is always faster than plain products (0.7 to 1.0 at 32 keys, 0.3 to 0.8 from 256
on), and the kernel of `short_attention` is faster than torch's.
"""
QUERY_CHUNK = 128
"""Queries in a chunk.

At length 4096, 8 heads of 64, forward and backward, chunks of 64, 128, 256, 512 take 86, 111, 141, 248 ms
with a window of 64, and 178, 180, 220, 315 with a window of 256 (without a window 893).
"""


def masked_softmax(
    e: Float[Tensor, "*B S"], visible: Bool[Tensor, "*#B S"] | None = None
) -> Float[Tensor, "*B S"]:
    """Return `a_i = exp(e_i) / sum_j exp(e_j)` over the visible entries, and zeros instead of NaN if no entry
    is visible."""
    if visible is None:
        return e.softmax(-1)
    # The lowest finite number, not -inf, so that the softmax of a row without visible entries stays finite.
    hidden = ~visible
    return e.masked_fill(hidden, torch.finfo(e.dtype).min).softmax(-1).masked_fill(hidden, 0.0)


def attention_weights(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H #T S"] | None = None,
) -> Float[Tensor, "B H T S"]:
    """Return `softmax(q k^T / sqrt(K))` over the visible keys, and zeros instead of NaN if no key
    is visible."""
    return masked_softmax((q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2), visible)


def attention_reference(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H #T S"] | None = None,
    causal: bool = False,
    window: int = 0,
) -> Float[Tensor, "B H T K"]:
    """Return weights times values, over the keys that are `visible` and, if `causal`, allowed by
    `causal_mask`.

    `visible` (B, 1, 1, S) is a mask of keys: padding, or slots that are still empty. The queries are at the
    last T of the S positions. `window` restricts `causal`.
    """
    return attention_weights(q, k, combine_masks(q, k, visible, causal, window)) @ v


def attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H #T S"] | None = None,
    causal: bool = False,
    window: int = 0,
) -> Float[Tensor, "B H T K"]:
    """Compute `attention_reference` by the fastest path. Memory is O(T + S) unless `visible` itself is T x S.

    On devices other than a CPU, `causal` together with a window, T < S or a mask of keys creates a T x S
    mask.
    """
    T, S, cpu = q.shape[2], k.shape[2], q.device.type == "cpu"
    if window >= S:
        window = 0
    causal = causal and (T > 1 or window > 0)  # a single query is at the end, after all keys
    mask_of_keys = visible is None or visible.shape[2] == 1
    full_causal = causal and window == 0 and T == S and mask_of_keys
    # The kernel, called directly, requires a dense last axis.
    kernel_usable = cpu and causal and mask_of_keys and all(tensor.stride(-1) == 1 for tensor in (q, k, v))
    path = "fused"
    if (
        cpu
        and q.dtype == torch.bfloat16
        and min(MAX_PRODUCT_KEYS, MAX_PRODUCT_KEYS_PER_WIDTH * q.shape[3]) >= S
    ):
        path = "products"
    elif window == 0 and short.short_attention_usable(q, k, v, visible, causal):
        path = "short"
    elif kernel_usable and full_causal and visible is not None and has_cpu_flash_attention():
        path = "keys"
    elif kernel_usable and not full_causal and T > QUERY_CHUNK and has_cpu_flash_attention():
        path = "chunks"
    if not use_fast_path("attention", path, True):
        return attention_reference(q, k, v, visible, causal, window)
    if path == "products":
        return _product_attention(q, k, v, visible, causal, window)
    if path == "short":
        return short.short_attention(q, k, v, visible, causal)
    k, v = k.to(q.dtype), v.to(q.dtype)
    if path == "keys":  # both masks at once, which `F.scaled_dot_product_attention` rejects
        assert visible is not None
        return cpu_flash_attention(q, k, v, True, _additive_mask(visible, q.dtype, -torch.inf))[0]
    if path == "chunks":
        return cast(Tensor, _ChunkedAttention.apply(q, k, v, visible, window))  # type: ignore[no-untyped-call]
    full_causal = full_causal and visible is None
    mask = None if full_causal else combine_masks(q, k, visible, causal, window)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=full_causal)


def _product_attention(
    q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, causal: bool, window: int
) -> Float[Tensor, "B H T K"]:
    """Compute the reference in q's own precision. Autocast would compute and store the softmax in float32."""
    mask = combine_masks(q, k, visible, causal, window)
    bias = None if mask is None else _additive_mask(mask, q.dtype, torch.finfo(q.dtype).min)
    with without_autocast(q.device):
        y: Tensor = _ProductAttention.apply(q, k.to(q.dtype), v.to(q.dtype), bias)  # type: ignore[no-untyped-call]
    if mask is None or (causal and visible is None):  # every query sees itself
        return y
    return y.masked_fill(~mask.any(-1, keepdim=True), 0.0)


class _ProductAttention(torch.autograd.Function):
    """`softmax(q k^T / sqrt(K) + bias) v` in three operations, and five in the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        B, H, T, K = q.shape
        S, scale = k.shape[2], 1 / math.sqrt(K)
        q, k, v = (part.reshape(B * H, -1, K) for part in (q, k, v))
        if bias is None:
            scores = torch.bmm(q, k.mT).mul_(scale)
        else:
            shared = bias.expand(B, H, T, S).reshape(B * H, T, S) if bias.shape[:2] != (1, 1) else bias[0]
            scores = torch.baddbmm(shared, q, k.mT, alpha=scale)
        weights = scores.softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        return torch.bmm(weights, v).view(B, H, T, K)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, weights = ctx.saved_tensors
        B, H, T, K = dy.shape
        dy = dy.reshape(B * H, T, K)
        dscores = softmax_backward(torch.bmm(dy, v.mT), weights)
        dscores.mul_(1 / math.sqrt(K))
        dq, dk, dv = torch.bmm(dscores, k), torch.bmm(dscores.mT, q), torch.bmm(weights.mT, dy)
        return dq.view(B, H, T, K), dk.view(B, H, -1, K), dv.view(B, H, -1, K), None


class _ChunkedAttention(torch.autograd.Function):
    """Causal attention in chunks of `QUERY_CHUNK` queries, each with the keys in its reach and its own mask.

    Time is O(T (w + QUERY_CHUNK)) with a window w, and nothing of size T x S exists. The kernel is the one
    behind `F.scaled_dot_product_attention`. It is called directly, so that the gradients of overlapping keys
    are added in place. Autograd would create a gradient of full length for each chunk. Chunks in bfloat16 are
    short, so the kernel is faster in float32.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, window: int) -> Tensor:
        y, sums = torch.empty_like(q), []
        for queries, keys in _query_key_chunks(q, k, window):
            chunk, bias = _attention_chunk(q, k, v, visible, window, queries, keys)
            y[:, :, queries], log_sum = cpu_flash_attention(*chunk, False, bias)
            sums.append(log_sum)
        ctx.save_for_backward(q, k, v, y, *sums)
        ctx.visible, ctx.window = visible, window
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, y, *sums = ctx.saved_tensors
        dq = torch.empty_like(q)
        dk, dv = (torch.zeros_like(x, dtype=_compute_dtype(x)) for x in (k, v))
        for (queries, keys), log_sum in zip(_query_key_chunks(q, k, ctx.window), sums, strict=True):
            chunk, bias = _attention_chunk(q, k, v, ctx.visible, ctx.window, queries, keys)
            dy_part, y_part = (x[:, :, queries].to(_compute_dtype(q)) for x in (dy, y))
            dq[:, :, queries], dk_part, dv_part = cpu_flash_attention_backward(
                dy_part, *chunk, y_part, log_sum, bias
            )
            dk[:, :, keys] += dk_part
            dv[:, :, keys] += dv_part
        return dq, dk.to(k.dtype), dv.to(v.dtype), None, None


def _query_key_chunks(q: Tensor, k: Tensor, window: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of queries, each with the slice of keys from the first in any query's window to the last
    query."""
    T, S = q.shape[2], k.shape[2]
    for first in range(0, T, QUERY_CHUNK):
        last = min(first + QUERY_CHUNK, T)
        reach = max(0, S - T + first - window + 1) if window else 0
        yield slice(first, last), slice(reach, S - T + last)


def _attention_chunk(
    q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, window: int, queries: slice, keys: slice
) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """Return q, k and v of a chunk, and the mask that the kernel adds to the scores."""
    precision = _compute_dtype(q)
    q, k, v = q[:, :, queries].to(precision), k[:, :, keys].to(precision), v[:, :, keys].to(precision)
    mask = combine_masks(q, k, None if visible is None else visible[..., keys], True, window)
    assert mask is not None
    return (q, k, v), _additive_mask(mask, precision, -torch.inf)


def _compute_dtype(x: Tensor) -> torch.dtype:
    return torch.float32 if x.dtype == torch.bfloat16 else x.dtype


def _additive_mask(mask: Tensor, dtype: torch.dtype, hidden: float) -> Tensor:
    """Return 0 where a key is visible, `hidden` elsewhere."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, hidden)


def combine_masks(
    q: Tensor, k: Tensor, visible: Bool[Tensor, "#B #H #T S"] | None, causal: bool, window: int = 0
) -> Bool[Tensor, "#B #H #T S"] | None:
    """Return which keys each query sees, under all conditions together. None means all keys."""
    if not causal:
        return visible
    mask = causal_mask(q.shape[2], window, q.device, k.shape[2])[None, None]
    return mask if visible is None else mask & visible


def causal_mask(
    size: int, window: int = 0, device: torch.device | None = None, keys: int | None = None
) -> Bool[Tensor, "T S"]:
    """Return True where query i may see key j: j <= i and, with a window w, j > i - w (i itself and the w - 1
    keys before).

    There are `size` queries and as many keys. If there are more `keys`, the queries are the last positions.
    """
    keys = size if keys is None else keys
    ones = torch.ones(size, keys, dtype=torch.bool, device=device).tril(keys - size)
    return ones if window == 0 else ones.triu(keys - size + 1 - window)
