"""Attention built up in steps. Each step is one equation (docs/attention-steps.md).

A query `s` attends to a memory of `S` vectors `h_i`. Each vector has a score `e_i`, the weights `a =
softmax(e)` sum to 1 over the memory, and the context is `c = sum_i a_i h_i`. Later steps add many queries at
once, separate keys and values, masks, and heads. The layers compute with
`ops.attention.dot_product.attention`, the fast form of the last step.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.attention.dot_product import attention_reference, attention_weights, masked_softmax


def additive_scores(
    q: Float[Tensor, "*B A"], k: Float[Tensor, "*#B S A"], v: Float[Tensor, " A"]
) -> Float[Tensor, "*B S"]:
    """Return `e_i = v . tanh(q + k_i)`, where `q = W s` and `k_i = U h_i` (Bahdanau et al. 2015, A.1.2).

    This is a perceptron with one hidden layer. Without the tanh the score would be `w . s + u . h_i`: the
    first term is the same for all i, so the softmax cancels it, and the weights would not depend on s.
    """
    return (q.unsqueeze(-2) + k).tanh() @ v


def mlp_scores(
    s: Float[Tensor, "B D"],
    h: Float[Tensor, "B S E"],
    W: Float[Tensor, "A D"],
    U: Float[Tensor, "A E"],
    v: Float[Tensor, " A"],
) -> Float[Tensor, "B S"]:
    """Return `e_i = v . tanh(W s + U h_i)`. `U h_i` does not depend on s, so a decoder computes it once."""
    return additive_scores(F.linear(s, W), F.linear(h, U), v)


def dot_scores(s: Float[Tensor, "*B K"], h: Float[Tensor, "*#B S K"]) -> Float[Tensor, "*B S"]:
    """Return `e_i = s . h_i` (Luong et al. 2015, 3.1)."""
    return (h @ s.unsqueeze(-1)).squeeze(-1)


def general_scores(
    s: Float[Tensor, "B D"], h: Float[Tensor, "B S E"], W: Float[Tensor, "D E"]
) -> Float[Tensor, "B S"]:
    """Return `e_i = s^T W h_i` (Luong et al. 2015, 3.1). With W = 1 it is the dot product."""
    return dot_scores(s, F.linear(h, W))


def scaled_dot_scores(s: Float[Tensor, "*B K"], h: Float[Tensor, "*#B S K"]) -> Float[Tensor, "*B S"]:
    """Return `e_i = s . h_i / sqrt(K)`, of unit variance if s and h have unit variance (Vaswani et al. 2017,
    3.2.1)."""
    return dot_scores(s / math.sqrt(s.shape[-1]), h)


def weighted_sum(a: Float[Tensor, "B S"], h: Float[Tensor, "B S D"]) -> Float[Tensor, "B D"]:
    """Return `c = sum_i a_i h_i`, a weighted mean of the memory's vectors. With one-hot weights, c is a
    vector of the memory."""
    return (a.unsqueeze(1) @ h).squeeze(1)


def single_query_attention(s: Float[Tensor, "B K"], h: Float[Tensor, "B S K"]) -> Float[Tensor, "B K"]:
    """Return the context of one query, by scaled dot products."""
    return weighted_sum(masked_softmax(scaled_dot_scores(s, h)), h)


def batched_query_attention(q: Float[Tensor, "B T K"], h: Float[Tensor, "B S K"]) -> Float[Tensor, "B T K"]:
    """Return `Y = softmax(Q H^T / sqrt(K)) H`: T queries in one product. Each row of weights sums to 1 over
    S."""
    return attention_weights(q[:, None], h[:, None])[:, 0] @ h


def key_value_attention(
    q: Float[Tensor, "B T K"],
    h: Float[Tensor, "B S D"],
    W_k: Float[Tensor, "K D"],
    W_v: Float[Tensor, "E D"],
    visible: Bool[Tensor, "#B #T S"] | None = None,
) -> Float[Tensor, "B T E"]:
    """Return `Y = softmax(Q K^T / sqrt(K)) V`, with keys `K = H W_k^T` and values `V = H W_v^T`.

    With a mask, query t has a weight for vector i only where `visible`.
    """
    k, v = F.linear(h, W_k), F.linear(h, W_v)
    mask = None if visible is None else visible[:, None]
    return attention_weights(q[:, None], k[:, None], mask)[:, 0] @ v


def self_attention(
    x: Float[Tensor, "B T D"],
    W_q: Float[Tensor, "K D"],
    W_k: Float[Tensor, "K D"],
    W_v: Float[Tensor, "E D"],
    visible: Bool[Tensor, "#B #T T"] | None = None,
) -> Float[Tensor, "B T E"]:
    """Return the attention of the vectors to each other, with `Q = X W_q^T`. Without a mask, the order of the
    vectors has no effect."""
    return key_value_attention(F.linear(x, W_q), x, W_k, W_v, visible)


def multi_head_attention(
    x: Float[Tensor, "B T D"],
    W_q: Float[Tensor, "D D"],
    W_k: Float[Tensor, "D D"],
    W_v: Float[Tensor, "D D"],
    W_o: Float[Tensor, "D D"],
    heads: int,
    visible: Bool[Tensor, "#B #T T"] | None = None,
) -> Float[Tensor, "B T D"]:
    """Run H self-attentions of width K = D / H in parallel, then apply `W_o` (Vaswani et al. 2017, 3.2.2).

    Rows h K .. (h + 1) K of `W_q`, `W_k` and `W_v` belong to head h. The scale is sqrt(K), where K is the
    width of a head, and the softmax is over the keys, the last axis of (B, H, T, S).
    """
    q, k, v = (torch.unflatten(F.linear(x, W), 2, (heads, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    y = attention_reference(q, k, v, None if visible is None else visible[:, None])
    return F.linear(y.transpose(1, 2).flatten(2), W_o)
