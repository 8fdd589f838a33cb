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
from foveal.data.text.special_tokens import Marks, framed
from foveal.data.text.token_batches import HeldOut, Windows
from foveal.data.text.token_store import TokenArray
from foveal.data.text.tokenizers import Ids, Tokenizer

SHARE = 0.15
"""Of each window's tokens, one at least."""
MASKED, RANDOM = 0.8, 0.1
"""Of those: `mask` stands in their place, or a random token; the others stay as they are."""
GAP = "[MASK]"
"""How a user writes a token that is to be guessed."""


@dataclass(frozen=True)
class RunningText:
    """A part of a corpus, and whose tokens these are."""

    tokens: TokenArray
    tokenizer: Tokenizer


class Masked:
    """Windows of `context` tokens, framed by marks as sources are: a pure function of (seed, epoch, index).

    Columns: `source` (B, T) as it is read, `target` (B, T) as it was, and `hidden` (B, T), 1 where it is to
    be guessed, which is never a mark. `tokens` are those of `source`.
    """

    def __init__(self, text: RunningText, batches: Windows | HeldOut, seed: int):
        self._marks, self._opened = Marks(text.tokenizer.size), text.tokenizer.opened
        self._batches, self._seed = batches, seed
        self.per_epoch = batches.per_epoch

    @classmethod
    def windows(cls, text: RunningText, rows: int, context: int, seed: int) -> "Masked":
        """For training: random windows, and other gaps in each epoch."""
        return cls(text, Windows(text.tokens, rows, _room(text, context), seed), seed)

    @classmethod
    def held_out(cls, text: RunningText, rows: int, context: int) -> "Masked":
        """Every token but the last once, in one epoch, to be read again and again."""
        return cls(text, HeldOut(text.tokens, rows, _room(text, context)), 0)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        found = self._batches.batch(epoch, index)
        tokens = found.inputs
        B, T = tokens.shape
        lengths = torch.full((B,), T) if found.lengths is None else found.lengths
        chance = torch.Generator().manual_seed(derived_seed(self._seed, "hidden", epoch, index))
        hidden = choose_hidden(lengths, T, chance)
        columns = {
            "source": self._framed(corrupted(tokens, hidden, self._marks, chance), lengths),
            "target": self._framed(tokens, lengths),
            "hidden": F.pad(hidden.long(), (int(self._opened), 1)),
        }
        framed = lengths + int(self._opened) + 1
        return ExampleBatch(torch.arange(B), columns, {"source": framed}, int(framed.sum()))

    def _framed(self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"]) -> Int[Tensor, "B S"]:
        """`stop` right behind each row, `start` before it if the tokenizer is `opened`; then zeros."""
        rows = F.pad(tokens, (0, 1))
        rows[torch.arange(len(rows)), lengths] = self._marks.stop
        return F.pad(rows, (1, 0), value=self._marks.start) if self._opened else rows


def choose_hidden(lengths: Int[Tensor, " B"], size: int, chance: torch.Generator) -> Bool[Tensor, "B T"]:
    """True at `SHARE` of each row's first `lengths` places, rounded; at one at least where there is one."""
    draws = torch.rand(len(lengths), size, generator=chance)
    draws = draws.masked_fill(torch.arange(size) >= lengths[:, None], 2.0)
    ranks = draws.argsort(1).argsort(1)
    wanted = (SHARE * lengths).round().long().clamp(min=1).minimum(lengths)
    return ranks < wanted[:, None]


def corrupted(
    tokens: Int[Tensor, "B T"], hidden: Bool[Tensor, "B T"], marks: Marks, chance: torch.Generator
) -> Int[Tensor, "B T"]:
    """What is read in place of `tokens`: most of the hidden ones become `mask`, some random, some stay.

    Those that stay make the model look at what it reads: there are no masks in the texts of later tasks.
    """
    draws = torch.rand(tokens.shape, generator=chance)
    others = torch.randint(marks.size, tokens.shape, generator=chance)
    seen = torch.where(hidden & (draws < MASKED), marks.mask, tokens)
    return torch.where(hidden & (draws >= MASKED) & (draws < MASKED + RANDOM), others, seen)


def with_gaps(text: str, tokenizer: Tokenizer) -> Ids:
    """The tokens of a source (S,), framed by marks, with `mask` for each GAP of its text.

    Where tokens begin with the space before a word, that before a gap is a part of what is to be guessed.
    Errors: UserError for text that the tokens can't spell.
    """
    *before, last = text.split(GAP)
    if any(len(piece) > 1 and piece.startswith(b" ") for piece in tokenizer.pieces):
        before = [part.removesuffix(" ") for part in before]
    gap = np.array([Marks(tokenizer.size).mask])
    parts = [tokens for part in before for tokens in (tokenizer.encode(part), gap)]
    return framed(np.concatenate([*parts, tokenizer.encode(last)]), tokenizer)


def _room(text: RunningText, context: int) -> int:
    """Tokens of the text in a window."""
    room = context - 1 - int(text.tokenizer.opened)
    if room < 2:
        raise UserError(f"data.context={context} leaves no room for text between the marks: raise it")
    return room
