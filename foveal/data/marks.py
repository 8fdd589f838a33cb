"""The tokens that stand for no text: they begin, end and hide."""

from dataclasses import dataclass


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
