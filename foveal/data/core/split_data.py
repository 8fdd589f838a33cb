"""A part of the data: its rows as they are told, what is right of each, and what a model reads of them."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from foveal.data.core.examples import Examples

ExamplesT = TypeVar("ExamplesT", bound=Examples, covariant=True)


@dataclass(frozen=True)
class SplitData(Generic[ExamplesT]):
    """Rows in one order: as they are told, and in numbers."""

    sources: list[str]
    """What each is called: its text, or the name of its file."""
    references: list[Any]
    """What is right of each, as given: a label, a text, or the labels of its places; none if nothing is."""
    examples: ExamplesT
    lengths: list[int]
    """Of each, in words, frames, steps or moves, for a breakdown; none where all are seen at one size."""
    sizes: dict[str, int]
    """How much there is beside the number of examples."""
    sha256: str
    content_hashes: list[str] = field(default_factory=list)
    """The sha256 of what each was read from, where that is no text."""

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def facts(self) -> dict[str, Any]:
        """For JSON: sizes and sha256."""
        return {"examples": len(self), **self.sizes, "sha256": self.sha256}


def content_hash(rows: Iterable[Any]) -> str:
    """The sha256 of what JSON can write."""
    content = hashlib.sha256()
    for row in rows:
        content.update(json.dumps(row).encode())
    return content.hexdigest()


def word_counts(texts: Iterable[str]) -> list[int]:
    """Their lengths."""
    return [len(text.split()) for text in texts]


def evenly_spaced(count: int, maximum: int) -> list[int]:
    """Of `count` rows at most so many, from the first to the last."""
    rows: list[int] = np.linspace(0, count - 1, min(maximum, count)).astype(int).tolist()
    return rows
