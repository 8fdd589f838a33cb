"""Texts to bags of n-grams, weighted by how rare each is: TF-IDF."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.encoders.make_memory import make_memory
from foveal.layers.blocks.moe import AuxLosses
from foveal.ops.ngrams import UNUSED, ngram_codes, ngram_vocabulary, term_weights


class NgramEncoder(nn.Module):
    """`memory, aux = encoder(tokens, lengths)`: the TF-IDF of `width` n-grams of 1 to `longest` tokens.

    The n-grams are those that occur in most training texts, in two at least. An n-gram that occurs c times in
    a text has the weight `(1 + ln c) idf` (Salton and Buckley 1988; `ops.ngrams`). The vector of a text has
    length 1. Before `fit`, there are no n-grams. Nothing is learned by gradients.

    Example:

        >>> encoder = layers.NgramEncoder(vocabulary=5, width=8, longest=2)
        >>> tokens, lengths = torch.tensor([[1, 2, 3], [1, 2, 0]]), torch.tensor([3, 2])
        >>> encoder.fit(tokens, lengths)
        >>> memory, aux = encoder(tokens, lengths)
        >>> tuple(memory.vectors.shape)
        (2, 1, 8)
    """

    codes: Tensor
    idf: Tensor

    def __init__(self, vocabulary: int, width: int, longest: int):
        super().__init__()
        self.vocabulary, self.width, self.longest = vocabulary, width, longest
        self.limit, self.aux_names = None, ()
        self.register_buffer("codes", torch.full((width,), UNUSED))
        self.register_buffer("idf", torch.zeros(width))

    def input_block(self) -> nn.Module:
        """Return this encoder, whose n-grams are those of training texts."""
        return self

    @torch.no_grad()
    def fit(self, tokens: Int[Tensor, "N S"], lengths: Int[Tensor, " N"]) -> None:
        """Choose the n-grams and compute their weights; see `layers.data_dependent_init`."""
        rows = zip(tokens, lengths.tolist(), strict=True)
        texts = [ngram_codes(row[:length], self.longest) for row, length in rows]
        codes, idf = ngram_vocabulary(texts, self.width)
        self.codes.copy_(codes)
        self.idf.copy_(idf)

    def forward(
        self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        counts = [tokens.shape[1]] * len(tokens) if lengths is None else lengths.tolist()
        texts = (row[:count] for row, count in zip(tokens, counts, strict=True))
        vectors = [term_weights(ngram_codes(text, self.longest), self.codes, self.idf) for text in texts]
        return make_memory(torch.stack(vectors)[:, None], None, "tokens", "mean"), {}
