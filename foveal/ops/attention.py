"""Attention: `softmax(Q K^T / sqrt(K)) V` (Vaswani et al. 2017, equation 1), masks, rotary positions."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.dispatch import choose

SHORT = 128
"""Up to this many keys, plain products beat the fused kernel in bfloat16 on a CPU (its backward is slow)."""


def attention_weights(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H T S"] | None = None,
) -> Float[Tensor, "B H T S"]:
    """`softmax(q k^T / sqrt(K))` over the visible keys; a query that sees nothing gets zeros, not NaN."""
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
    if visible is None:
        return scores.softmax(-1)
    # The least finite number, not -inf: the softmax of a row that sees nothing stays finite.
    hidden = ~visible
    weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(hidden, 0.0)


def attention_reference(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H T S"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "B H T K"]:
    """Weights times values. `causal`: query i sees keys 0..i (T = S), as if `visible` were that triangle."""
    if causal:
        visible = causal_mask(q.shape[2], device=q.device)[None, None]
    return attention_weights(q, k, visible) @ v


def attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S K"],
    visible: Bool[Tensor, "#B #H T S"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "B H T K"]:
    """`attention_reference`, by torch's fused kernel (memory O(T)) where that is the faster one."""
    slow_backward = q.dtype == torch.bfloat16 and q.device.type == "cpu" and k.shape[2] <= SHORT
    if choose("attention", "fused", not slow_backward):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, is_causal=causal)
    return attention_reference(q, k, v, visible, causal)


def causal_mask(size: int, window: int = 0, device: torch.device | None = None) -> Bool[Tensor, "T T"]:
    """True where query i may see key j: j <= i and, with a window w, j > i - w (itself and w - 1 before)."""
    ones = torch.ones(size, size, dtype=torch.bool, device=device)
    return ones.tril() if window == 0 else ones.tril().triu(1 - window)


def rotate(x: Float[Tensor, "B T H K"], positions: Int[Tensor, "#B T"]) -> Float[Tensor, "B T H K"]:
    """Rotary positions (Su et al. 2021, equation 34): pairs (x_i, x_(i+K/2)) turned by `t / 10000^(2i/K)`.

    The product of a turned query and a turned key depends on the distance of their positions alone.
    """
    half = x.shape[-1] // 2
    exact = torch.float64 if x.dtype == torch.float64 else torch.float32
    frequencies = 10000.0 ** (-torch.arange(half, device=x.device, dtype=exact) / half)
    angles = positions[:, :, None, None].to(exact) * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    # (a cos - b sin, b cos + a sin) for the halves (a, b) of x
    return torch.addcmul(x * torch.cat([cos, cos], -1), x.roll(half, -1), torch.cat([-sin, sin], -1))
