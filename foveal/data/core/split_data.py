"""A split of the data: its rows by name, their references, and the examples that a model reads."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from foveal.data.core.examples import Examples

ExamplesT = TypeVar("ExamplesT", bound=Examples, covariant=True)


@dataclass(frozen=True)
class SplitData(Generic[ExamplesT]):
    """A split: names, references and examples of its rows, in the same order."""

    sources: Sequence[str]
    """The name of each row: its text, or the name of its file."""
    references: Sequence[Any]
    """The targets: labels, texts, or lists with a label for each place. Empty without targets."""
    examples: ExamplesT
    lengths: Sequence[int]
    """The rows' lengths in words, frames, steps or moves, for scores by length. Empty if all lengths are
    equal."""
    sizes: dict[str, int]
    """Sizes other than the number of examples."""
    sha256: str
    content_hashes: Sequence[str] = ()
    """The sha256 of each row's source, unless sources are texts."""

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def facts(self) -> dict[str, Any]:
        """The sizes and the sha256, for JSON."""
        return {"examples": len(self), **self.sizes, "sha256": self.sha256}


class ContentHash:
    """The sha256 of rows as JSON, which are added some at a time."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, rows: Iterable[Any]) -> None:
        for row in rows:
            self._digest.update(json.dumps(row).encode())

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def word_counts(texts: Iterable[str]) -> list[int]:
    """Return the number of words of each text."""
    return [len(text.split()) for text in texts]


def evenly_spaced(count: int, maximum: int) -> list[int]:
    """Return at most `maximum` indices of `count` rows, evenly spaced from the first to the last."""
    rows: list[int] = np.linspace(0, count - 1, min(maximum, count)).astype(int).tolist()
    return rows
