"""Tokens of a text that are to be predicted: their choice, and the gaps that a user leaves."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from foveal.data.text.special_tokens import SpecialTokens, add_special_tokens
from foveal.data.text.tokenizers import TokenIds, Tokenizer

MASK_PLACEHOLDER = "[MASK]"
"""The text by which a user marks a token to be predicted."""


def draw_order(lengths: Int[Tensor, " B"], size: int, generator: torch.Generator) -> Int[Tensor, "B T"]:
    """Return a random order of the first `lengths` tokens of each row: the place of each token in the order.

    The tokens after them come last.
    """
    draws = torch.rand(len(lengths), size, generator=generator)
    draws = draws.masked_fill(torch.arange(size) >= lengths[:, None], 2.0)
    return draws.argsort(1).argsort(1)


def count_of(fraction: float, lengths: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    """Return a fraction of each length, rounded, and at least 1 unless the length is 0."""
    return (fraction * lengths).round().long().clamp(min=1).minimum(lengths)


def encode_with_masks(text: str, tokenizer: Tokenizer) -> TokenIds:
    """Return the tokens of a source (S,) with special tokens, and with `mask` for each MASK_PLACEHOLDER.

    If tokens include the space before a word, the space before a placeholder is part of the predicted token.

    Raises: UserError: the tokenizer can't encode the text.
    """
    *before, last = text.split(MASK_PLACEHOLDER)
    if any(len(piece) > 1 and piece.startswith(b" ") for piece in tokenizer.pieces):
        before = [text_part.removesuffix(" ") for text_part in before]
    mask = np.array([SpecialTokens(tokenizer.size).mask])
    parts = [tokens for text_part in before for tokens in (tokenizer.encode(text_part), mask)]
    return add_special_tokens(np.concatenate([*parts, tokenizer.encode(last)]), tokenizer)
