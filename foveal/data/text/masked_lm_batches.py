"""Windows of running text with some tokens hidden, to be guessed from both sides (Devlin et al. 2019)."""

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
"""Of each window's tokens, one at least."""
MASK_PROBABILITY, RANDOM_PROBABILITY = 0.8, 0.1
"""Of those: `mask` stands in their place, or a random token; the others stay as they are."""
MASK_PLACEHOLDER = "[MASK]"
"""How a user writes a token that is to be guessed."""


@dataclass(frozen=True)
class TokenizedText:
    """A part of a corpus, and whose tokens these are."""

    tokens: TokenArray
    tokenizer: Tokenizer


class MaskedBatches:
    """Windows of `context` tokens, framed by marks as sources are: a pure function of (seed, epoch, index).

    Columns: `source` (B, T) as it is read, `target` (B, T) as it was, and `hidden` (B, T), 1 where it is to
    be guessed, which is never a mark. `tokens` are those of `source`.
    """

    def __init__(self, text: TokenizedText, batches: WindowBatches | TokenEvalBatches, seed: int):
        self._special_tokens, self._add_bos = SpecialTokens(text.tokenizer.size), text.tokenizer.add_bos
        self._batches, self._seed = batches, seed
        self.per_epoch = batches.per_epoch

    @classmethod
    def for_training(cls, text: TokenizedText, rows: int, context: int, seed: int) -> "MaskedBatches":
        """For training: random windows, and other gaps in each epoch."""
        return cls(text, WindowBatches(text.tokens, rows, _text_tokens(text, context), seed), seed)

    @classmethod
    def for_evaluation(cls, text: TokenizedText, rows: int, context: int) -> "MaskedBatches":
        """Every token but the last once, in one epoch, to be read again and again."""
        return cls(text, TokenEvalBatches(text.tokens, rows, _text_tokens(text, context)), 0)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        found = self._batches.batch(epoch, index)
        tokens = found.inputs
        B, T = tokens.shape
        lengths = torch.full((B,), T) if found.lengths is None else found.lengths
        chance = torch.Generator().manual_seed(derived_seed(self._seed, "hidden", epoch, index))
        hidden = choose_masked(lengths, T, chance)
        columns = {
            "source": self._framed(mask_tokens(tokens, hidden, self._special_tokens, chance), lengths),
            "target": self._framed(tokens, lengths),
            "hidden": F.pad(hidden.long(), (int(self._add_bos), 1)),
        }
        framed = lengths + int(self._add_bos) + 1
        return ExampleBatch(torch.arange(B), columns, {"source": framed}, int(framed.sum()))

    def _framed(self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"]) -> Int[Tensor, "B S"]:
        """`eos` right behind each row, `bos` before it if the tokenizer is `add_bos`; then zeros."""
        rows = F.pad(tokens, (0, 1))
        rows[torch.arange(len(rows)), lengths] = self._special_tokens.eos
        return F.pad(rows, (1, 0), value=self._special_tokens.bos) if self._add_bos else rows


def choose_masked(lengths: Int[Tensor, " B"], size: int, generator: torch.Generator) -> Bool[Tensor, "B T"]:
    """True at `MASK_FRACTION` of each row's first `lengths` places, rounded; at one at least where there is
    one."""
    draws = torch.rand(len(lengths), size, generator=generator)
    draws = draws.masked_fill(torch.arange(size) >= lengths[:, None], 2.0)
    ranks = draws.argsort(1).argsort(1)
    wanted = (MASK_FRACTION * lengths).round().long().clamp(min=1).minimum(lengths)
    return ranks < wanted[:, None]


def mask_tokens(
    tokens: Int[Tensor, "B T"],
    hidden: Bool[Tensor, "B T"],
    special_tokens: SpecialTokens,
    generator: torch.Generator,
) -> Int[Tensor, "B T"]:
    """What is read in place of `tokens`: most of the hidden ones become `mask`, some random, some stay.

    Those that stay make the model look at what it reads: there are no masks in the texts of later tasks.
    """
    draws = torch.rand(tokens.shape, generator=generator)
    others = torch.randint(special_tokens.size, tokens.shape, generator=generator)
    seen = torch.where(hidden & (draws < MASK_PROBABILITY), special_tokens.mask, tokens)
    return torch.where(
        hidden & (draws >= MASK_PROBABILITY) & (draws < MASK_PROBABILITY + RANDOM_PROBABILITY), others, seen
    )


def encode_with_masks(text: str, tokenizer: Tokenizer) -> TokenIds:
    """The tokens of a source (S,), framed by marks, with `mask` for each GAP of its text.

    Where tokens begin with the space before a word, that before a gap is a part of what is to be guessed.
    Errors: UserError for text that the tokens can't spell.
    """
    *before, last = text.split(MASK_PLACEHOLDER)
    if any(len(piece) > 1 and piece.startswith(b" ") for piece in tokenizer.pieces):
        before = [part.removesuffix(" ") for part in before]
    gap = np.array([SpecialTokens(tokenizer.size).mask])
    parts = [tokens for part in before for tokens in (tokenizer.encode(part), gap)]
    return add_special_tokens(np.concatenate([*parts, tokenizer.encode(last)]), tokenizer)


def _text_tokens(text: TokenizedText, context: int) -> int:
    """Tokens of the text in a window."""
    room = context - 1 - int(text.tokenizer.add_bos)
    if room < 2:
        raise UserError(f"data.context_length={context} leaves no room for text between the marks: raise it")
    return room
