"""Multi-head attention that is not causal: to the whole of one's own row, or to a memory."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.layers.mixers.base import StateShapes, check_input
from foveal.layers.mixers.memory_checks import memory_tensors, require_state
from foveal.layers.mixers.multi_head_attention import MultiHeadAttention
from foveal.ops.padding import sequence_mask, zero_padding


class FullAttention(MultiHeadAttention):
    """Self-attention in which every position sees its whole row, for encoders (Vaswani et al. 2017, 3.2.3).

    With `rotary`, queries and keys are turned by their positions. It needs the whole row at once, so it
    has no state and refuses one.
    """

    bounded = False

    def __init__(self, width: int, heads: int, rotary: bool = False):
        super().__init__(width, heads, width)
        self.rotary = rotary

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return None

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        if state is not None:
            raise ValueError("attention to the whole row can't go on from a state: give it the row at once")
        check_input(x, None, {}, x)
        T = x.shape[1]
        x = zero_padding(x, lengths)
        positions = torch.arange(T, device=x.device)[None] if self.rotary else None
        visible = None if lengths is None else sequence_mask(lengths, T)[:, None]
        y = self._attend(*self._queries_keys_values(x, positions), visible)
        return zero_padding(y, lengths), None


class CrossAttention(MultiHeadAttention):
    """Attention to a memory: queries from the input, keys and values from the memory's vectors.

    (Vaswani et al. 2017, 3.2.3: encoder-decoder attention.) Where a row of the memory is empty, the heads
    give zeros.

    State: `memory_keys` and `memory_values` (B, S, H, K), projected once, and `memory_mask` (B, S). They stay
    as they are, so the state that is returned is the one that was passed.
    """

    bounded = True

    def __init__(self, width: int, heads: int, memory_width: int):
        super().__init__(width, heads, memory_width)
        cached = (-1, heads, width // heads)
        self.shapes: StateShapes = {"memory_keys": cached, "memory_values": cached, "memory_mask": (-1,)}

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        vectors, mask = memory_tensors(memory, batch)
        keys, values = self._project(vectors, self.key, self.value).chunk(2, 2)
        return {"memory_keys": keys, "memory_values": values, "memory_mask": mask}

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        require_state(state)
        check_input(x, state, self.shapes, self.key.weight)
        x = zero_padding(x, lengths)
        keys, values, mask = (state[name] for name in self.shapes)
        y = self._attend(self._project(x, self.query), keys, values, mask[:, None])
        return zero_padding(y, lengths), state
