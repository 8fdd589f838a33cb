"""Attention of one new position a row, against keys and values that stay where they are."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.launch import Kernel

KEYS_PER_TASK = 1 << 15
"""Numbers of keys that are worth a task of their own."""

_forward = Kernel("cached_attention", "forward")


def cached_attention_usable(
    q: Float[Tensor, "B 1 H K"], keys: Float[Tensor, "B C H K"], values: Float[Tensor, "B C H K"]
) -> bool:
    """Whether `cached_attention` can compute with these."""
    return (
        q.shape[1] == 1
        and not torch.is_grad_enabled()
        and keys.is_contiguous()
        and values.is_contiguous()
        and _forward.usable(q, keys, values)
    )


def cached_attention(
    q: Float[Tensor, "B 1 H K"],
    k: Float[Tensor, "B 1 H K"],
    v: Float[Tensor, "B 1 H K"],
    keys: Float[Tensor, "B C H K"],
    values: Float[Tensor, "B C H K"],
    count: Int[Tensor, " B"],
    filled: int,
) -> Float[Tensor, "B 1 H K"]:
    """`ops.attention.dot_product.dot_product` of the new positions to all of their rows so far, themselves included.

    Row b's new key and value are written into slot `count[b]` of the caches, which must have room for them;
    no count is more than `filled`.
    """
    B, _, H, K = q.shape
    C = keys.shape[1]
    y, weights = q.new_empty(q.shape), q.new_empty(B * H, -(-C // LANES) * LANES)
    shares = min(H, max(1, H * K * filled // KEYS_PER_TASK))
    parts = [part.contiguous() for part in (q, k, v)]
    _forward(B * shares, *parts, y, keys, values, weights, count, C, H, K, shares)
    return y
