"""Multi-head attention to a memory."""

from jaxtyping import Float, Int
from torch import Tensor

from foveal.config.values import Size, StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.distributed.tensor_group import SplitAxes, TensorGroup
from foveal.layers.mixers.base import StateShapes, check_input
from foveal.layers.mixers.memory_checks import memory_tensors, require_state
from foveal.layers.mixers.multi_head_attention import MultiHeadAttention, check_heads
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, StackFacts, register_mixer
from foveal.ops.padding import zero_padding


class CrossAttention(MultiHeadAttention):
    """Attention to a memory: queries from the input, keys and values from the memory's vectors.

    This is encoder-decoder attention (Vaswani et al. 2017, 3.2.3). Where a row of the memory is empty, the
    heads return zeros.

    State: `memory_keys` and `memory_values` (B, S, H, K), projected once, and `memory_mask` (B, S). They
    never change, so the state is returned as it was passed.

    Example:

        >>> vectors, mask = torch.randn(2, 7, 32), torch.ones(2, 7, dtype=torch.bool)
        >>> memory = layers.Memory(vectors, mask, summary=vectors.mean(1))
        >>> mixer = layers.CrossAttention(16, heads=4, memory_width=32)
        >>> y, state = mixer(torch.randn(2, 5, 16), mixer.init_state(2, memory=memory))
        >>> tuple(y.shape)
        (2, 5, 16)

    Raises: ValueError: `heads` does not divide `width`.
    """

    bounded = True
    attends_to_memory = True
    ignores_order = True

    def __init__(self, width: int, heads: int, memory_width: int):
        super().__init__(width, heads, memory_width)
        self.shapes = self._state_shapes()

    def _state_shapes(self) -> StateShapes:
        cached = (-1, self.heads, self.head_width)
        return {"memory_keys": cached, "memory_values": cached, "memory_mask": (-1,)}

    def split_among(self, group: TensorGroup) -> SplitAxes:
        axes = super().split_among(group)
        self.shapes = self._state_shapes()
        return axes

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        vectors, mask = memory_tensors(memory, batch)
        vectors = self.group.enter_whole(vectors)
        keys, values = self._project(vectors, self.key, self.value).chunk(2, 2)
        return {"memory_keys": keys, "memory_values": values, "memory_mask": mask}

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        require_state(state)
        own_lengths = self.group.own_lengths(lengths)
        x = self.group.enter(zero_padding(x, own_lengths))
        check_input(x, state, self.shapes, self.key.weight)
        keys, values, mask = (state[name] for name in self.shapes)
        y = self._attend(self._project(x, self.query), keys, values, mask[:, None])
        return zero_padding(y, own_lengths), state


class CrossAttentionSettings(StrictModel):
    heads: Size = 4
    """Number of heads, each of an equal part of the width."""


@register_mixer("cross")
class CrossAttentionSpec(MixerSpec[CrossAttentionSettings]):
    Settings = CrossAttentionSettings
    same_width = True
    reads_memory = True

    def make(self, place: MixerPlace[CrossAttentionSettings]) -> CrossAttention:
        return CrossAttention(place.width, place.settings.heads, place.memory_width)

    def check(self, settings: CrossAttentionSettings, stack: StackFacts) -> None:
        check_heads(settings.heads, stack, self.section)
