"""ELMo: the layers of a language model in both directions, and their learned mixture (Peters et al. 2018)."""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.embedding import Embedding
from foveal.ops.padding import reverse_by_length, zero_padding


class _DirectionPair(nn.Module):
    """A block that reads a text forward, and one that reads the text backward. Neither sees the other."""

    def __init__(self, there: Block, back: Block):
        super().__init__()
        self.there, self.back = there, back

    def forward(
        self, there: Float[Tensor, "B T D"], back: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """Return the outputs of both; `back` is reversed within each row's length."""
        return self.there(there, lengths=lengths)[0], self.back(back, lengths=lengths)[0]


class BidirectionalLayers(nn.Module):
    """Two causal stacks of blocks behind one embedding, the second of which reads each row backward.

    Layer 0 is the embedding. `width` is that of both directions together.

    Example:

        >>> block = lambda: layers.Block(layers.LSTM(8, 8))
        >>> both = layers.BidirectionalLayers(layers.Embedding(100, 8), [block()], [block()])
        >>> there, back = both(torch.randint(100, (2, 5)), torch.tensor([5, 3]))
        >>> len(there), tuple(there[1].shape)
        (2, (2, 5, 8))
    """

    limit: int | None = None
    aux_names: tuple[str, ...] = ()

    def __init__(self, embedding: Embedding, there: Sequence[nn.Module], back: Sequence[nn.Module]):
        super().__init__()
        self.embedding = embedding
        self.pairs = nn.ModuleList(
            _DirectionPair(cast(Block, one), cast(Block, other))
            for one, other in zip(there, back, strict=True)
        )
        self.width, self.vocabulary = 2 * embedding.width, embedding.size

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth."""
        return stack_layer_groups(self, self.pairs)

    def forward(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[list[Float[Tensor, "B T D"]], list[Float[Tensor, "B T D"]]]:
        """Return the vectors of each layer, of the forward and of the backward stack.

        At position t the first have read the tokens up to t, the others those from t on.
        """
        vectors = zero_padding(self.embedding(tokens), lengths)
        there, back = vectors, reverse_by_length(vectors, lengths)
        all_there, all_back = [there], [vectors]
        for pair in self.pairs:
            there, back = pair(there, back, lengths)
            all_there.append(there)
            all_back.append(reverse_by_length(back, lengths))
        return all_there, all_back


class ScalarMix(nn.Module):
    """`gamma sum_j softmax(s)_j h_j` (Peters et al. 2018, equation 1). It starts as the mean of the layers.

    Example:

        >>> mix = layers.ScalarMix(2)
        >>> mix([torch.zeros(1, 1, 2), torch.ones(1, 1, 2)]).tolist()
        [[[0.5, 0.5]]]
    """

    def __init__(self, count: int):
        super().__init__()
        self.scores = nn.Parameter(torch.empty(count))
        self.gamma = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.scores)
        nn.init.ones_(self.gamma)

    def forward(self, layers: Sequence[Float[Tensor, "B T D"]]) -> Float[Tensor, "B T D"]:
        weights = self.gamma * self.scores.softmax(0)
        return sum(
            (weight * layer for weight, layer in zip(weights, layers, strict=True)),
            layers[0].new_zeros(()),
        )


class ElmoEncoder(nn.Module):
    """`memory, aux = encoder(tokens, lengths)`: a mixture of the layers of both directions, side by side.

    Other runs can reuse the layers, so `training.freeze=encoder` leaves the mixture trainable.

    Example:

        >>> block = lambda: layers.Block(layers.LSTM(8, 8))
        >>> both = layers.BidirectionalLayers(layers.Embedding(100, 8), [block()], [block()])
        >>> memory, aux = layers.ElmoEncoder(both)(torch.randint(100, (2, 5)), torch.tensor([5, 3]))
        >>> tuple(memory.vectors.shape), memory.mask.sum(1).tolist()
        ((2, 5, 16), [5, 3])
    """

    limit: int | None = None
    aux_names: tuple[str, ...] = ()

    def __init__(self, both: BidirectionalLayers):
        super().__init__()
        self.layers = both
        self.mix = ScalarMix(1 + len(both.pairs))
        self.width, self.vocabulary = both.width, both.vocabulary

    def reusable_encoder(self) -> nn.Module:
        """Return the layers, which a bidirectional language model trains."""
        return self.layers

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth; the mixture lies above all layers."""
        return stack_layer_groups(self, self.layers.pairs, after=[self.mix])

    def forward(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory and `aux`. Padding may hold any tokens of the vocabulary."""
        there, back = self.layers(tokens, lengths)
        mixed = self.mix([torch.cat(pair, 2) for pair in zip(there, back, strict=True)])
        return make_memory(mixed, lengths, "tokens", "mean"), {}
