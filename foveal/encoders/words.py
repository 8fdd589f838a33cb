"""Words, each with its forms and characters, to a Memory."""

from jaxtyping import Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.encoders.pooling import EncoderPooling
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack
from foveal.layers.dropout import Dropout
from foveal.layers.word_vectors import WordVectors
from foveal.ops.padding import zero_padding


class WordEncoder(nn.Module):
    """`memory, aux = encoder(words, lengths)`: a vector for each word from its forms and characters, then any
    stack.

    The memory has a vector of `width` for each word. The final norm comes after the stack. `dropout` is that
    of the words' vectors.
    """

    def __init__(
        self,
        vectors: WordVectors,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        dropout: float = 0.0,
        pooling: EncoderPooling = "mean",
    ):
        super().__init__()
        self.width = width
        self.vectors, self.dropout = vectors, Dropout(dropout)
        self.stack = stack
        self.limit, self.aux_names = stack.limit, aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = pooling

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm])

    def forward(
        self, words: Int[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory and `aux`. Padding may hold any known ids."""
        x = self.dropout(self.vectors(zero_padding(words, lengths)))
        x, _, aux = self.stack(x, None, lengths=lengths)
        return make_memory(self.norm(x), lengths, "tokens", self.pooling), aux
