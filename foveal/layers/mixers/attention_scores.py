"""Scores of a decoder's state and the vectors of a memory, for attention at every step."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveal.layers.linear import Linear
from foveal.ops.attention.additive import additive_attention
from foveal.ops.attention.dot_product import masked_softmax
from foveal.ops.attention.step_by_step import (
    additive_scores,
    dot_scores,
    scaled_dot_scores,
    weighted_sum,
)

AttentionScore = Literal["initial-state", "every-step", "additive", "dot", "scaled-dot", "general"]
AttendFunction = Callable[[Tensor], Tensor]
"""Maps a cell's h (B, D) to the context (B, M)."""


class AdditiveScore(nn.Module):
    """`e_i = v . tanh(W s + k_i)` with keys `k_i = U h_i + b` (Bahdanau et al. 2015).

    All weights start uniform in +-1/sqrt(fan-in), the bias at zero.

    Example:

        >>> score = layers.AdditiveScore(16, memory_width=8)
        >>> keys = score.key(torch.randn(2, 7, 8))
        >>> tuple(score(torch.randn(2, 16), keys).shape)
        (2, 7)
    """

    def __init__(self, width: int, memory_width: int):
        super().__init__()
        self.query = Linear(width, width, bias=False)
        self.key = Linear(memory_width, width)
        self.weight = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init_linear(self.query, self.key)
        bound = 1 / math.sqrt(len(self.weight))
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, s: Float[Tensor, "*B D"], keys: Float[Tensor, "*#B S D"]) -> Float[Tensor, "*B S"]:
        return additive_scores(self.query(s), keys, self.weight)

    def attend_function(
        self,
        keys: Float[Tensor, "B S D"],
        values: Float[Tensor, "B S M"],
        mask: Bool[Tensor, "B S"],
        steps: int,
    ) -> AttendFunction:
        """Return the function from s to the context, to be called `steps` times."""
        context_of = additive_attention(keys, self.weight, values, mask, steps)
        return lambda s: context_of(self.query(s))


class DotProductScore(nn.Module):
    """The dot product of `s` and each key. A key is a vector of the memory, or `W h_i` (Luong et
    al. 2015).

    Example:

        >>> from foveal.ops.attention.step_by_step import scaled_dot_scores
        >>> score = layers.DotProductScore(torch.nn.Linear(8, 16), scaled_dot_scores)
        >>> keys = score.key(torch.randn(2, 7, 8))
        >>> tuple(score(torch.randn(2, 16), keys).shape)
        (2, 7)
    """

    def __init__(self, key: nn.Module, score_function: Callable[[Tensor, Tensor], Tensor]):
        super().__init__()
        self.key, self.score_function = key, score_function
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init_linear(*self.children())

    def forward(self, s: Float[Tensor, "*B D"], keys: Float[Tensor, "*#B S D"]) -> Float[Tensor, "*B S"]:
        return self.score_function(s, keys)

    def attend_function(
        self,
        keys: Float[Tensor, "B S D"],
        values: Float[Tensor, "B S M"],
        mask: Bool[Tensor, "B S"],
        steps: int,
    ) -> AttendFunction:
        """Return the function from s to the context, which does not depend on `steps`."""
        return lambda s: weighted_sum(masked_softmax(self(s, keys), mask), values)


def make_score(
    score: AttentionScore, width: int, memory_width: int
) -> AdditiveScore | DotProductScore | None:
    """Return the score called `score`; None if no position is scored.

    Raises: ValueError: `score` is dot, and the widths differ.
    """
    if score in ("initial-state", "every-step"):
        return None
    if score == "additive":
        return AdditiveScore(width, memory_width)
    if score == "dot":
        if width != memory_width:
            widths = f"not {width} and {memory_width}"
            raise ValueError(f"score=dot needs a decoder as wide as the memory, {widths}: set score=general")
        return DotProductScore(nn.Identity(), dot_scores)
    key = Linear(memory_width, width, bias=False)
    return DotProductScore(key, scaled_dot_scores if score == "scaled-dot" else dot_scores)


def init_linear(*layers: nn.Module) -> None:
    """Initialize weights of linear layers uniformly in +-1/sqrt(fan-in), as torch does, and biases
    with zero."""
    for layer in layers:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
