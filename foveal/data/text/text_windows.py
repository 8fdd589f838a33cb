"""Windows of text with special tokens, as encoders of texts read them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.token_batches import TokenEvalBatches, WindowBatches
from foveal.data.text.token_store import TokenArray
from foveal.data.text.tokenizers import Tokenizer

BatchesT = TypeVar("BatchesT", bound="TextWindows")


@dataclass(frozen=True)
class TokenizedText:
    """The tokens of a split of a corpus, and their tokenizer."""

    tokens: TokenArray
    tokenizer: Tokenizer


class TextWindows(ABC):
    """Windows of `context` tokens with special tokens, in the format of sources. A pure function of (seed,
    epoch, index).

    The column `source` (B, T) is the text that the model reads; `tokens` counts its tokens.
    """

    def __init__(self, text: TokenizedText, batches: WindowBatches | TokenEvalBatches, seed: int):
        self.special_tokens, self._add_bos = SpecialTokens(text.tokenizer.size), text.tokenizer.add_bos
        self._batches, self._seed = batches, seed
        self.per_epoch = batches.per_epoch

    @classmethod
    def for_training(
        cls: type[BatchesT], text: TokenizedText, rows: int, context: int, seed: int
    ) -> BatchesT:
        """Return batches for training: random windows, with other choices in each epoch."""
        return cls(text, WindowBatches(text.tokens, rows, _text_tokens(text, context), seed), seed)

    @classmethod
    def for_evaluation(cls: type[BatchesT], text: TokenizedText, rows: int, context: int) -> BatchesT:
        """Return batches for evaluation: every token except the last once. All epochs are equal."""
        return cls(text, TokenEvalBatches(text.tokens, rows, _text_tokens(text, context)), 0)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        windows = self._batches.batch(epoch, index)
        B, T = windows.inputs.shape
        lengths = torch.full((B,), T) if windows.lengths is None else windows.lengths
        generator = torch.Generator().manual_seed(derived_seed(self._seed, "hidden", epoch, index))
        columns = self.columns(windows.inputs, lengths, generator)
        source_lengths = lengths + int(self._add_bos) + 1
        return ExampleBatch(torch.arange(B), columns, {"source": source_lengths}, source_lengths)

    @abstractmethod
    def columns(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"], generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Return the columns of a batch of windows."""

    def add_ends(self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"]) -> Int[Tensor, "B S"]:
        """Add `eos` after each row, `bos` before it if the tokenizer has `add_bos`, and zeros at the end."""
        rows = F.pad(tokens, (0, 1))
        rows[torch.arange(len(rows)), lengths] = self.special_tokens.eos
        return F.pad(rows, (1, 0), value=self.special_tokens.bos) if self._add_bos else rows

    def pad_ends(self, numbers: Int[Tensor, "B T"]) -> Int[Tensor, "B S"]:
        """Add a zero for each special token that `add_ends` adds."""
        return F.pad(numbers, (int(self._add_bos), 1))


def _text_tokens(text: TokenizedText, context: int) -> int:
    """Return the number of tokens of the text in a window, without special tokens.

    Raises: UserError: a window has room for fewer than two.
    """
    count = context - 1 - int(text.tokenizer.add_bos)
    if count < 2:
        raise UserError(f"data.context_length={context} leaves no room for text: raise it")
    return count
