"""Several sources to one Memory: the vectors of several encoders, concatenated."""

import math
from collections.abc import Mapping

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory, concat_memories
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.pooling import EncoderPooling, pool_vectors
from foveal.layers.blocks.moe import AuxLosses, add_aux, aux_names
from foveal.layers.blocks.stack import Stack
from foveal.layers.linear import Linear
from foveal.ops.padding import zero_padding


class JointEncoder(nn.Module):
    """`memory, aux = encoder(sources, lengths)`: each encoder in `parts` reads the source of the same name.

    A linear map projects the vectors of each encoder to `width`; its bias tells the encoders apart. A stack
    of `width` then reads all vectors of a row, in the order of `parts` and packed to the left. The final norm
    comes after the stack. A source that several rows share is encoded once: `sources[name + "_of"]` (B,)
    holds the index of each row's source. The weights of the maps start normal with standard deviation
    1/sqrt(D), the biases with 0.02.

    Example:

        >>> def stack():
        ...     return layers.Stack([layers.Block(layers.FullAttention(16, heads=4))])
        >>> text = layers.TextEncoder(layers.Embedding(100, 16), stack(), 16)
        >>> image = layers.ImageEncoder([layers.ConvNormAct(3, 8, 3, stride=8)], 8)
        >>> encoder = layers.JointEncoder({"source": image, "question": text}, stack(), 16)
        >>> sources = {"source": torch.randn(2, 3, 32, 32), "question": torch.randint(100, (2, 5))}
        >>> memory, aux = encoder(sources, {"question": torch.tensor([5, 3])})
        >>> tuple(memory.vectors.shape)
        (2, 21, 16)
    """

    in_stream = ("norm",)

    def __init__(
        self,
        parts: Mapping[str, nn.Module],
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        pooling: EncoderPooling = "mean",
    ):
        super().__init__()
        self.width, self.limit = width, stack.limit
        self.parts = nn.ModuleDict(parts)
        self.maps = nn.ModuleDict({name: Linear(encoder.width, width) for name, encoder in parts.items()})  # type: ignore[arg-type]
        self.stack = stack
        self.aux_names = aux_names(self)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = pooling
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in self.maps.values():
            assert isinstance(linear, Linear)
            nn.init.normal_(linear.weight, std=1 / math.sqrt(linear.in_features))
            nn.init.normal_(linear.bias, std=0.02)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm], inputs=self.parts.values())

    def reusable_encoder(self) -> nn.Module:
        """Return the image encoder, which another run can reuse. The text encoders fit this task only."""
        return self.parts["source"]

    def forward(
        self, sources: Mapping[str, Tensor], lengths: Mapping[str, Int[Tensor, " R"]]
    ) -> tuple[Memory, AuxLosses]:
        memories, total = [], dict[str, Tensor]()
        for name, encoder in self.parts.items():
            memory, aux = encoder(sources[name], lengths.get(name))
            memory = _project_memory(memory, self.maps[name])
            if (rows := sources.get(f"{name}_of")) is not None:
                memory, aux = memory.select_rows(rows), {term: sums[rows] for term, sums in aux.items()}
            memories.append(memory)
            total = add_aux(total, aux)
        memory = concat_memories(memories)
        x, inverse = _pack_valid(memory.vectors, memory.mask)
        counts = memory.mask.sum(1)
        x, aux = self.stack.encode(x, counts, self.norm)
        x = zero_padding(x, counts)
        vectors = x.gather(1, inverse[:, :, None].expand_as(x))
        joined = Memory(vectors, memory.mask, pool_vectors(x, counts, self.pooling), memory.segments)
        return joined, add_aux(total, aux)


def _project_memory(memory: Memory, linear: nn.Module) -> Memory:
    """Return the memory with its vectors and its summary projected.

    The summary is a mean, and a linear map of a mean is the mean of the mapped vectors.
    """
    vectors = linear(memory.vectors).where(memory.mask[:, :, None], 0.0)
    return Memory(vectors, memory.mask, linear(memory.summary), memory.segments)


def _pack_valid(
    vectors: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
) -> tuple[Float[Tensor, "B S D"], Int[Tensor, "B S"]]:
    """Move each row's valid vectors to the beginning of the row, in order. Return them and the new index of
    each vector."""
    order = (~mask).int().argsort(dim=1, stable=True)
    return vectors.gather(1, order[:, :, None].expand_as(vectors)), order.argsort(1)
