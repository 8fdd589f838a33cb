"""Words, each with its forms and characters, to a Memory."""

from jaxtyping import Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.encoders.pooling import EncoderPooling
from foveal.encoders.stack_encoder import StackEncoder
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.blocks.stack import Stack
from foveal.layers.dropout import Dropout
from foveal.layers.word_vectors import WordVectors
from foveal.ops.padding import zero_padding


class WordEncoder(StackEncoder):
    """`memory, aux = encoder(words, lengths)`: a vector for each word from its forms and characters, then any
    stack.

    The memory has a vector of `width` for each word. The final norm comes after the stack. `dropout` is that
    of the words' vectors.

    Example:

        >>> vectors = layers.WordVectors(1, [3, 1], 30, width=16, character_width=8, filters=10)
        >>> stack = layers.Stack([layers.Block(layers.LSTM(26, 16))])
        >>> words = torch.tensor([[[2, 7, 8, 0], [1, 9, 0, 0]]])
        >>> memory, aux = layers.WordEncoder(vectors, stack, 16)(words)
        >>> tuple(memory.vectors.shape)
        (1, 2, 16)
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
        self.vectors, self.dropout = vectors, Dropout(dropout)
        self.add_stack(stack, width, norm, pooling)

    def forward(
        self, words: Int[Tensor, "B T F"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory and `aux`. Padding may hold any known ids."""
        return self.encode_vectors(self.dropout(self.vectors(zero_padding(words, lengths))), lengths)
