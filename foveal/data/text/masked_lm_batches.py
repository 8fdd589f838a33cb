"""Windows of text with masked tokens, to be predicted from both sides (Devlin et al. 2019)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from foveal.data.text.hidden_tokens import count_of, draw_order
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_windows import TextWindows

MASK_FRACTION = 0.15
"""Fraction of each window's tokens that are predicted; at least one token is."""
MASK_PROBABILITY, RANDOM_PROBABILITY = 0.8, 0.1
"""Probabilities that a predicted token is replaced by `mask`, or by a random token. Others stay unchanged."""


class MaskedBatches(TextWindows):
    """Windows whose `source` has masked tokens.

    More columns: `target` (B, T), the original text; `hidden` (B, T), which is 1 at tokens to predict and
    never at special tokens.
    """

    def columns(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"], generator: torch.Generator
    ) -> dict[str, Tensor]:
        hidden = choose_masked(lengths, tokens.shape[1], generator)
        return {
            "source": self.add_ends(mask_tokens(tokens, hidden, self.special_tokens, generator), lengths),
            "target": self.add_ends(tokens, lengths),
            "hidden": self.pad_ends(hidden.long()),
        }


def choose_masked(lengths: Int[Tensor, " B"], size: int, generator: torch.Generator) -> Bool[Tensor, "B T"]:
    """Choose `MASK_FRACTION` of the first `lengths` tokens of each row, rounded, and at least one token.

    In rows without tokens, no token is chosen.
    """
    return draw_order(lengths, size, generator) < count_of(MASK_FRACTION, lengths)[:, None]


def mask_tokens(
    tokens: Int[Tensor, "B T"],
    hidden: Bool[Tensor, "B T"],
    special_tokens: SpecialTokens,
    generator: torch.Generator,
) -> Int[Tensor, "B T"]:
    """Replace most of the hidden `tokens` by `mask` and some by random tokens. The others stay unchanged.

    Unchanged tokens make the model use the tokens it reads, since texts of later tasks have no masks.
    """
    draws = torch.rand(tokens.shape, generator=generator)
    random_tokens = torch.randint(special_tokens.size, tokens.shape, generator=generator)
    masked = torch.where(hidden & (draws < MASK_PROBABILITY), special_tokens.mask, tokens)
    replaced = hidden & (draws >= MASK_PROBABILITY) & (draws < MASK_PROBABILITY + RANDOM_PROBABILITY)
    return torch.where(replaced, random_tokens, masked)
