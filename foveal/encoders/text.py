"""Tokens to a Memory: an embedding, and any stack of mixers."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory, Segment
from foveal.encoders.summary import Summary, summarize
from foveal.layers.block import Stack
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.moe import Aux, aux_names
from foveal.ops.padding import present, zero_padding


class TextEncoder(nn.Module):
    """`memory, aux = encoder(tokens, lengths)`: one vector of `width` a token, the last norm behind them."""

    def __init__(
        self,
        embedding: Embedding | OneHot,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        embedding_norm: nn.Module | None = None,
        summary: Summary = "mean",
    ):
        super().__init__()
        self.vocabulary, self.width = embedding.size, width
        self.embedding = embedding
        self.embedding_norm = nn.Identity() if embedding_norm is None else embedding_norm
        self.stack = stack
        self.limit, self.aux_names = stack.limit, aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.summary: Summary = summary

    def forward(
        self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, Aux]:
        """Tokens in the padding may be anything in the vocabulary."""
        vectors, aux = self.vectors(tokens, lengths)
        if lengths is None:
            mask = torch.ones(tokens.shape, dtype=torch.bool, device=tokens.device)
        else:
            mask = present(lengths, tokens.shape[1])
        summary = summarize(vectors, lengths, self.summary)
        return Memory(vectors, mask, summary, (Segment(0, tokens.shape[1], "tokens"),)), aux

    def vectors(
        self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B S D"], Aux]:
        x = self.embedding_norm(self.embedding(tokens))
        x, _, aux = self.stack(x, None, lengths=lengths)
        return zero_padding(self.norm(x), lengths), aux
