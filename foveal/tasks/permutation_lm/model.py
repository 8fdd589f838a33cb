"""XLNet: a Transformer with two streams, which predicts tokens in any order (Yang et al. 2019)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.dropout import Dropout
from foveal.layers.embedding import Embedding
from foveal.layers.linear import Linear
from foveal.layers.norm import LayerNorm
from foveal.ops.activation import Activation
from foveal.ops.padding import sequence_mask
from foveal.tasks.permutation_lm.relative_attention import RelativeAttention


class Sight(NamedTuple):
    """Where the vectors of a stream stand, and what they see of the content."""

    places: Int[Tensor, "B N"]
    visible: Bool[Tensor, "B N T"]
    same_segment: Bool[Tensor, "B N T"] | None


class TwoStreamBlock(nn.Module):
    """A block that computes both streams with the same weights, post-norm:

    x = norm(x + attention(x, content))        x = norm(x + feedforward(x))
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        heads: int,
        segments: bool,
        activation: Activation,
        dropout: float,
        epsilon: float,
    ):
        super().__init__()
        self.attention = RelativeAttention(width, heads, segments)
        self.attention_norm = LayerNorm(width, epsilon)
        self.feedforward = MLP(width, hidden, activation)
        self.feedforward_norm = LayerNorm(width, epsilon)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "B N D"], content: Float[Tensor, "B T D"], sight: Sight
    ) -> Float[Tensor, "B N D"]:
        """Return the next vectors of a stream; the content stream reads itself."""
        x = self.attention_norm(x + self.dropout(self.attention(x, content, *sight)))
        return self.feedforward_norm(x + self.dropout(self.feedforward(x)))


class PermutationLM(nn.Module):
    """Predicts each token from those before it in an order (Yang et al. 2019, 2.2 and 2.3).

    The content stream h has a vector for each token, the query stream g one for each token to predict:

        h_i = block(h_i, h_j with rank_j <= rank_i)        from the embedding of token i
        g_i = block(g_i, h_j with rank_j <  rank_i)        from a learned vector: token i is not seen

    The ranks say the order. Tokens of one rank see each other, but do not predict each other. With ranks
    0, 1, 2 ... of the positions, this is a causal language model.

    The projection shares the table of the embedding, which starts normal with standard deviation 0.02.
    """

    not_hidden = ("projection",)

    def __init__(
        self,
        vocabulary: int,
        width: int,
        layers: int,
        heads: int,
        hidden: int,
        segments: bool = False,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        epsilon: float = 1e-12,
    ):
        super().__init__()
        self.width, self.vocabulary = width, vocabulary
        self.embedding = Embedding(vocabulary, width)
        self.first_query = nn.Parameter(torch.empty(width))
        self.blocks = nn.ModuleList(
            TwoStreamBlock(width, hidden, heads, segments, activation, dropout, epsilon)
            for _ in range(layers)
        )
        self.dropout = Dropout(dropout)
        self.projection = Linear(width, vocabulary)
        self.projection.weight = self.embedding.table
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.embedding.table, std=0.02)
        nn.init.normal_(self.first_query, std=0.02)
        nn.init.zeros_(self.projection.bias)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth."""
        return stack_layer_groups(self, self.blocks)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        ranks: Int[Tensor, "B T"],
        places: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B N V"]:
        """Return the logits of the tokens at `places`, each from the tokens of smaller rank alone."""
        return self.projection(self.features(tokens, ranks, places, lengths, segments))

    def features(
        self,
        tokens: Int[Tensor, "B T"],
        ranks: Int[Tensor, "B T"],
        places: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Return the last vectors of the query stream, before the projection."""
        if lengths is not None:  # padding comes last, so that no token sees it
            padding = ~sequence_mask(lengths, tokens.shape[1])
            ranks = ranks.masked_fill(padding, torch.iinfo(ranks.dtype).max)
        everywhere = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        up_to_itself = ranks[:, None] <= ranks[:, :, None]
        before_it = ranks[:, None] < ranks.gather(1, places)[:, :, None]
        of_content = Sight(everywhere, up_to_itself, same_segment(segments, everywhere))
        of_query = Sight(places, before_it, same_segment(segments, places))
        content = self.dropout(self.embedding(tokens))
        query = self.dropout(self.first_query.to(content.dtype).expand(*places.shape, -1))
        for block in self.blocks:
            query = block(query, content, of_query)
            if block is not self.blocks[-1]:  # whose content nobody reads
                content = block(content, content, of_content)
        return self.dropout(query)


def same_segment(
    segments: Int[Tensor, "B T"] | None, places: Int[Tensor, "B N"]
) -> Bool[Tensor, "B N T"] | None:
    """Return whether a token is of the segment of each place; None without segments."""
    return None if segments is None else segments.gather(1, places)[:, :, None] == segments[:, None]
