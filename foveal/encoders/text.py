"""Tokens to a Memory: an embedding, then any stack of mixers."""

from jaxtyping import Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.encoders.pooling import EncoderPooling
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding, OneHot


class TextEncoder(nn.Module):
    """`memory, aux = encoder(tokens, lengths)`: an embedding, a stack and a final norm.

    The memory has a vector of `width` for each token.
    """

    def __init__(
        self,
        embedding: Embedding | OneHot,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        embedding_norm: nn.Module | None = None,
        pooling: EncoderPooling = "mean",
    ):
        super().__init__()
        self.vocabulary, self.width = embedding.size, width
        self.embedding = embedding
        self.embedding_norm = nn.Identity() if embedding_norm is None else embedding_norm
        self.stack = stack
        self.limit, self.aux_names = stack.limit, aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = pooling

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm])

    def forward(
        self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory and `aux`. Padding may hold any tokens of the vocabulary."""
        x = self.embedding_norm(self.embedding(tokens))
        x, _, aux = self.stack(x, None, lengths=lengths)
        return make_memory(self.norm(x), lengths, "tokens", self.pooling), aux
