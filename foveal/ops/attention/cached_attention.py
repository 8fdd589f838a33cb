"""Attention of one new position per row to cached keys and values, which are not copied."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.launch import Kernel

KEYS_PER_TASK = 1 << 15
"""Elements of keys that justify a task of their own."""

_forward = Kernel("cached_attention", "forward")


def cached_attention_usable(
    q: Float[Tensor, "B 1 H K"], keys: Float[Tensor, "B C H K"], values: Float[Tensor, "B C H K"]
) -> bool:
    """Return whether `cached_attention` can compute with these tensors."""
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
    """Return `ops.attention.dot_product.attention` of the new positions to all positions of their rows so
    far, including themselves.

    The new key and value of row b are written into slot `count[b]` of the caches, which must have a free
    slot. No count may exceed `filled`.
    """
    B, _, H, K = q.shape
    C = keys.shape[1]
    y, weights = q.new_empty(q.shape), q.new_empty(B * H, -(-C // LANES) * LANES)
    shares = min(H, max(1, H * K * filled // KEYS_PER_TASK))
    inputs = [tensor.contiguous() for tensor in (q, k, v)]
    _forward(B * shares, *inputs, y, keys, values, weights, count, C, H, K, shares)
    return y
