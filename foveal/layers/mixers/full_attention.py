"""Multi-head attention of every position to its whole row, for encoders."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.layers.mixers.base import check_input
from foveal.layers.mixers.multi_head_attention import PUBLISHED_HEADS, HeadOptions, MultiHeadAttention
from foveal.ops.padding import sequence_mask, zero_padding


class FullAttention(MultiHeadAttention):
    """Self-attention in which every position sees its whole row (Vaswani et al. 2017, 3.2.3).

    With `rotary`, queries and keys are rotated by their positions. The layer needs the whole row at once, so
    there is no state, and a state as argument is an error.

    Example:

        >>> y, _ = layers.FullAttention(16, heads=4)(torch.randn(2, 5, 16), lengths=torch.tensor([5, 3]))
        >>> tuple(y.shape)
        (2, 5, 16)

    Raises: ValueError: `heads` does not divide `width`.
    """

    bounded = False

    def __init__(self, width: int, heads: int, rotary: bool = False, options: HeadOptions = PUBLISHED_HEADS):
        super().__init__(width, heads, width, options)
        self.rotary = rotary
        self.ignores_order = not rotary

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return None

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        if state is not None:
            raise ValueError(
                "attention to the whole row can't go on from a state: pass the whole row at once"
            )
        own_lengths = self.group.own_lengths(lengths)
        x = self.group.enter(zero_padding(x, own_lengths))
        check_input(x, None, {}, x)
        T = x.shape[1]
        positions = torch.arange(T, device=x.device)[None] if self.rotary else None
        visible = None if lengths is None else sequence_mask(lengths, T)[:, None]
        y = self._attend(*self._queries_keys_values(x, positions), visible)
        return zero_padding(y, own_lengths), None
