"""The tokens that stand for no text: they begin, end and hide."""

from dataclasses import dataclass

import numpy as np

from foveal.data.text.tokenizers import Ids, Tokenizer


@dataclass(frozen=True)
class Marks:
    """Three tokens behind the `size` = V of a tokenizer.

    A source ends with `stop`. A target y is read as [start, y ...] and scored as [y ..., stop]. `mask`
    stands for what is to be guessed.
    """

    size: int

    @property
    def start(self) -> int:
        return self.size

    @property
    def stop(self) -> int:
        return self.size + 1

    @property
    def mask(self) -> int:
        return self.size + 2

    @property
    def vocabulary(self) -> int:
        """V with the marks: the size of an embedding's table."""
        return self.size + 3


def framed(tokens: Ids, tokenizer: Tokenizer, longest: int | None = None) -> Ids:
    """A source as it is read: `stop` behind it, and `start` before it if its tokenizer wants so.

    Of a source that would be longer than `longest` with them, the last tokens are left out.
    """
    marks = Marks(tokenizer.size)
    front = [marks.start] if tokenizer.opened else []
    kept = tokens if longest is None else tokens[: max(0, longest - len(front) - 1)]
    return np.concatenate([np.array(front, np.int64), kept, np.array([marks.stop])])
