"""The tokens that stand for no text: they begin, end and hide."""

from dataclasses import dataclass

import numpy as np

from foveal.data.text.tokenizers import TokenIds, Tokenizer


@dataclass(frozen=True)
class SpecialTokens:
    """Three tokens behind the `size` = V of a tokenizer.

    A source ends with `eos`. A target y is read as [start, y ...] and scored as [y ..., stop]. `mask`
    stands for what is to be guessed.
    """

    size: int

    @property
    def bos(self) -> int:
        return self.size

    @property
    def eos(self) -> int:
        return self.size + 1

    @property
    def mask(self) -> int:
        return self.size + 2

    @property
    def vocab_size(self) -> int:
        """V with the marks: the size of an embedding's table."""
        return self.size + 3


def add_special_tokens(tokens: TokenIds, tokenizer: Tokenizer, max_length: int | None = None) -> TokenIds:
    """A source as it is read: `eos` behind it, and `bos` before it if its tokenizer wants so.

    Of a source that would be longer than `max_length` with them, the last tokens are left out.
    """
    marks = SpecialTokens(tokenizer.size)
    front = [marks.bos] if tokenizer.add_bos else []
    kept = tokens if max_length is None else tokens[: max(0, max_length - len(front) - 1)]
    return np.concatenate([np.array(front, np.int64), kept, np.array([marks.eos])])
