"""Tokens to a Memory: an embedding, then any stack of mixers."""

from jaxtyping import Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.encoders.pooling import EncoderPooling
from foveal.encoders.stack_encoder import StackEncoder
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding, OneHot, SegmentVectors


class TextEncoder(StackEncoder):
    """`memory, aux = encoder(tokens, lengths)`: an embedding, a stack and a final norm.

    The memory has a vector of `width` for each token.

    Example:

        >>> stack = layers.Stack([layers.Block(layers.GRU(16, 16))])
        >>> encoder = layers.TextEncoder(layers.Embedding(100, 16), stack, 16, pooling="last")
        >>> memory, aux = encoder(torch.randint(100, (2, 5)), torch.tensor([5, 3]))
        >>> tuple(memory.vectors.shape), memory.mask.sum(1).tolist()
        ((2, 5, 16), [5, 3])
    """

    def __init__(
        self,
        embedding: Embedding | OneHot,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        embedding_norm: nn.Module | None = None,
        pooling: EncoderPooling = "mean",
        segments: SegmentVectors | None = None,
    ):
        super().__init__()
        self.vocabulary = embedding.size
        self.embedding, self.segments = embedding, segments
        self.embedding_norm = nn.Identity() if embedding_norm is None else embedding_norm
        self.add_stack(stack, width, norm, pooling)

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory and `aux`. Padding may hold any tokens of the vocabulary.

        `segments` are those of the tokens, if the encoder has vectors of segments; without them, all tokens
        are of the first.
        """
        vectors = self.embedding(tokens)
        if self.segments is not None:
            vectors = self.segments(vectors, segments)
        return self.encode_vectors(self.embedding_norm(vectors), lengths)
