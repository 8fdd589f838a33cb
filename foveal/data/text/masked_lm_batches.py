"""Windows of text with masked tokens, to be predicted from both sides (Devlin et al. 2019)."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.special_tokens import SpecialTokens, add_special_tokens
from foveal.data.text.token_batches import TokenEvalBatches, WindowBatches
from foveal.data.text.token_store import TokenArray
from foveal.data.text.tokenizers import TokenIds, Tokenizer

MASK_FRACTION = 0.15
"""Fraction of each window's tokens that are predicted; at least one token is."""
MASK_PROBABILITY, RANDOM_PROBABILITY = 0.8, 0.1
"""Probabilities that a predicted token is replaced by `mask`, or by a random token. Others stay unchanged."""
MASK_PLACEHOLDER = "[MASK]"
"""The text by which a user marks a token to be predicted."""


@dataclass(frozen=True)
class TokenizedText:
    """The tokens of a split of a corpus, and their tokenizer."""

    tokens: TokenArray
    tokenizer: Tokenizer


class MaskedBatches:
    """Windows of `context` tokens with special tokens, in the format of sources. A pure function of (seed,
    epoch, index).

    Columns: `source` (B, T) with masked tokens, `target` (B, T) with the original tokens, and `hidden` (B,
    T), which is 1 at tokens to predict and never at special tokens. `tokens` counts the tokens of `source`.
    """

    def __init__(self, text: TokenizedText, batches: WindowBatches | TokenEvalBatches, seed: int):
        self._special_tokens, self._add_bos = SpecialTokens(text.tokenizer.size), text.tokenizer.add_bos
        self._batches, self._seed = batches, seed
        self.per_epoch = batches.per_epoch

    @classmethod
    def for_training(cls, text: TokenizedText, rows: int, context: int, seed: int) -> "MaskedBatches":
        """Return batches for training: random windows, with new masks in each epoch."""
        return cls(text, WindowBatches(text.tokens, rows, _text_tokens(text, context), seed), seed)

    @classmethod
    def for_evaluation(cls, text: TokenizedText, rows: int, context: int) -> "MaskedBatches":
        """Return batches for evaluation: every token except the last once. All epochs are equal."""
        return cls(text, TokenEvalBatches(text.tokens, rows, _text_tokens(text, context)), 0)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        windows = self._batches.batch(epoch, index)
        tokens = windows.inputs
        B, T = tokens.shape
        lengths = torch.full((B,), T) if windows.lengths is None else windows.lengths
        generator = torch.Generator().manual_seed(derived_seed(self._seed, "hidden", epoch, index))
        hidden = choose_masked(lengths, T, generator)
        columns = {
            "source": self._add_ends(mask_tokens(tokens, hidden, self._special_tokens, generator), lengths),
            "target": self._add_ends(tokens, lengths),
            "hidden": F.pad(hidden.long(), (int(self._add_bos), 1)),
        }
        source_lengths = lengths + int(self._add_bos) + 1
        return ExampleBatch(torch.arange(B), columns, {"source": source_lengths}, source_lengths)

    def _add_ends(self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"]) -> Int[Tensor, "B S"]:
        """Add `eos` after each row, `bos` before it if the tokenizer has `add_bos`, and zeros at the end."""
        rows = F.pad(tokens, (0, 1))
        rows[torch.arange(len(rows)), lengths] = self._special_tokens.eos
        return F.pad(rows, (1, 0), value=self._special_tokens.bos) if self._add_bos else rows


def choose_masked(lengths: Int[Tensor, " B"], size: int, generator: torch.Generator) -> Bool[Tensor, "B T"]:
    """Choose `MASK_FRACTION` of the first `lengths` tokens of each row, rounded, and at least one token.

    In rows without tokens, no token is chosen.
    """
    draws = torch.rand(len(lengths), size, generator=generator)
    draws = draws.masked_fill(torch.arange(size) >= lengths[:, None], 2.0)
    ranks = draws.argsort(1).argsort(1)
    count = (MASK_FRACTION * lengths).round().long().clamp(min=1).minimum(lengths)
    return ranks < count[:, None]


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


def _text_tokens(text: TokenizedText, context: int) -> int:
    """Return the number of tokens of the text in a window, without special tokens.

    Raises: UserError: a window has room for fewer than two.
    """
    count = context - 1 - int(text.tokenizer.add_bos)
    if count < 2:
        raise UserError(f"data.context_length={context} leaves no room for text: raise it")
    return count
