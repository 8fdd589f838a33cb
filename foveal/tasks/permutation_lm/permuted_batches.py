"""Windows of text whose last tokens in a random order are predicted (Yang et al. 2019, section 2.3)."""

import torch
from jaxtyping import Int
from torch import Tensor

from foveal.data.text.hidden_tokens import count_of, draw_order
from foveal.data.text.text_windows import TextWindows

PREDICTED_FRACTION = 1 / 6
"""Fraction of each window's tokens that are predicted; at least one token is. The paper's K is 6."""


class PermutedBatches(TextWindows):
    """Windows with a random order of their tokens. `source` is the original text.

    More columns: `target` and `hidden`, as of `MaskedBatches`; `rank` (B, T), by `draw_ranks`; `places`
    (B, N), the positions of the hidden tokens from left to right, and zeros in rows with fewer than N.
    """

    def columns(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"], generator: torch.Generator
    ) -> dict[str, Tensor]:
        text = self.add_ends(tokens, lengths)
        ranks = self.pad_ends(draw_ranks(lengths, tokens.shape[1], generator))
        hidden = ranks.clamp(max=1)
        return {"source": text, "target": text, "hidden": hidden, "rank": ranks, "places": places_of(hidden)}


def draw_ranks(lengths: Int[Tensor, " B"], size: int, generator: torch.Generator) -> Int[Tensor, "B T"]:
    """Draw an order of the first `lengths` tokens of each row, of which the last `PREDICTED_FRACTION` are
    predicted: they have the ranks 1, 2, 3 ... in this order, and all other tokens 0.

    The others see each other, as in the authors' code. The probabilities to learn are those of the paper: a
    predicted token depends on all tokens before it in the order.
    """
    order = draw_order(lengths, size, generator)
    ranks = order - (lengths - count_of(PREDICTED_FRACTION, lengths))[:, None] + 1
    return ranks.clamp(min=0).where(order < lengths[:, None], 0)


def places_of(hidden: Int[Tensor, "B T"]) -> Int[Tensor, "B N"]:
    """Return the positions of the ones of each row from left to right, and zeros on the right."""
    counts = hidden.sum(1)
    size = int(counts.max())
    places = hidden.argsort(dim=1, descending=True, stable=True)[:, :size]
    return places.where(torch.arange(size) < counts[:, None], 0)
