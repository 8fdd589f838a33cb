"""N-gram lookup as a layer: what followed the last tokens before, as a vector beside their embedding."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveal.core.state import State
from foveal.core.torch_private import content_version
from foveal.layers.embedding import Embedding
from foveal.ops.ngram_lookup import (
    NOTHING,
    last_followers,
    ngram_ends,
    ngram_followers,
    ngram_lengths,
    shift_left,
)

MEMORY = 2**20
"""Tokens of the training text that are remembered at most: the last ones."""
HISTORY = 1024
"""Tokens of a row that are remembered at most while the row is generated."""


class _SortedNgrams(NamedTuple):
    """The n-grams of a text, in the order of their codes, and what followed each of them."""

    codes: Int[Tensor, " N"]
    followers: Int[Tensor, " N"]


def training_inputs(tokens: Int[Tensor, " N"], longest: int) -> Int[Tensor, "N C"]:
    """Return each token of a training text with its followers, for a lookup of n-grams up to `longest`."""
    return torch.cat([tokens[:, None], ngram_followers(tokens + 1, ngram_lengths(longest))], 1)


class NgramLookup(nn.Module):
    """`vectors = lookup(followers)`: the sum of learned vectors, one for each n and what followed.

    The followers of a position are what followed the latest earlier occurrence of its last n tokens, for n =
    2, 3, 4, 6, 8, 12 and so on up to `longest` (`ops.ngram_lookup`). Earlier are the row's own tokens, and
    before them the training text, which `store_text` stores. What is learned is how far to trust each n.

    A training text is read with the followers of each position in the text itself (`training_inputs`), so
    that no token is predicted from itself. While a row is generated, `look_up` finds its followers.

    Example:

        >>> lookup = layers.NgramLookup(vocabulary=5, width=16, longest=4)
        >>> tokens = torch.tensor([[1, 2, 3, 1, 2]])
        >>> followers, state = lookup.look_up(tokens, lookup.init_state(1))
        >>> followers[0, -1].tolist()  # after 1, 2 stood a 3, numbered from 1; longer n-grams did not occur
        [4, 0, 0]
        >>> tuple(lookup(followers).shape)
        (1, 5, 16)
    """

    text: Tensor

    def __init__(self, vocabulary: int, width: int, longest: int):
        super().__init__()
        self.lengths = ngram_lengths(longest)
        self.size = vocabulary + 1  # the tokens and NOTHING
        self.vectors = Embedding(len(self.lengths) * self.size, width)
        self.register_buffer("text", torch.zeros(MEMORY, dtype=torch.int32))
        self._sorted: tuple[int, list[_SortedNgrams]] | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.vectors.table, std=len(self.lengths) ** -0.5)

    def forward(self, followers: Int[Tensor, "B T K"]) -> Float[Tensor, "B T D"]:
        rows = torch.arange(len(self.lengths), device=followers.device) * self.size
        return self.vectors((followers + rows).flatten(1)).unflatten(1, followers.shape[1:]).sum(2)

    @torch.no_grad()
    def store_text(self, tokens: Int[Tensor, " N"]) -> None:
        """Store the end of a training text."""
        last = tokens[-MEMORY:].to(self.text) + 1
        self.text.zero_()
        self.text[MEMORY - len(last) :] = last

    def held_out_inputs(self, tokens: Int[Tensor, " N"]) -> Int[Tensor, "N C"]:
        """Return each token of another text with its followers in that text and in the training text."""
        both = torch.cat([self._known_text(), tokens.new_full((1,), NOTHING), tokens + 1])
        return torch.cat([tokens[:, None], ngram_followers(both, self.lengths)[-len(tokens) :]], 1)

    def init_state(self, batch: int) -> State:
        """Return the state of rows that have read nothing."""
        return {"read": torch.zeros(batch, 0, dtype=torch.long, device=self.text.device)}

    def look_up(
        self, tokens: Int[Tensor, "B T"], state: State, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Int[Tensor, "B T K"], State]:
        """Return the followers of each position of rows, and the state after them."""
        before: Tensor = state["read"]
        text, count = torch.cat([before, tokens + 1], 1), tokens.shape[1]
        own = last_followers(text, count, self.lengths)
        ends = ngram_ends(text[:, -(count + self.lengths[-1]) :], self.lengths)
        known = torch.stack(
            [
                _find(ngrams, codes[:, -count:].contiguous(), whole[:, -count:])
                for ngrams, (codes, whole) in zip(self._ngrams(), ends, strict=True)
            ],
            -1,
        )
        if lengths is not None:  # padding goes to the left, where NOTHING is
            places = torch.arange(text.shape[1], device=text.device) - (count - lengths)[:, None]
            text = torch.where(places >= 0, text.gather(1, places.clamp(min=0)), NOTHING)
        return torch.where(own == NOTHING, known, own), {"read": text[:, -HISTORY:]}

    def _known_text(self) -> Int[Tensor, " N"]:
        """Return the training text after `NOTHING`."""
        count = int((self.text != NOTHING).sum())
        return torch.cat([self.text.new_full((1,), NOTHING), self.text[MEMORY - count :]]).long()

    def _ngrams(self) -> Sequence[_SortedNgrams]:
        """Return the n-grams of the training text for each n; they are sorted when the text has changed."""
        version = content_version(self.text)
        if self._sorted is None or self._sorted[0] != version:
            text = self._known_text()
            following, ngrams = shift_left(text), list[_SortedNgrams]()
            for codes, _ in ngram_ends(text, self.lengths):
                ordered, order = codes.sort(stable=True)
                ngrams.append(_SortedNgrams(ordered, following[order]))
            self._sorted = version, ngrams
        return self._sorted[1]


def _find(ngrams: _SortedNgrams, codes: Int[Tensor, "B T"], whole: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Return what followed the latest occurrence of n-grams in the training text."""
    places = torch.searchsorted(ngrams.codes, codes, right=True).sub(1).clamp(min=0)
    return torch.where(whole & (ngrams.codes[places] == codes), ngrams.followers[places], NOTHING)
