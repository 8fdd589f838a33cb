"""Scores of predictions, and their intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

NORMAL_QUANTILE = 1.959964
"""Of a 95 % interval."""


@dataclass(frozen=True)
class Score:
    """A score between 0 and 1 on a test set of `count` items."""

    value: float
    count: int

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of a share (Wilson 1927)."""
        z = NORMAL_QUANTILE**2 / self.count
        middle = (self.value + z / 2) / (1 + z)
        spread = (
            NORMAL_QUANTILE
            / (1 + z)
            * math.sqrt(self.value * (1 - self.value) / self.count + z / 4 / self.count)
        )
        return middle - spread, middle + spread


def accuracy(predicted: Sequence[str], labels: Sequence[str]) -> Score:
    """Return the share of equal labels."""
    return Score(sum(a == b for a, b in zip(predicted, labels, strict=True)) / len(labels), len(labels))


def spans(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Return name, start and end of the entities of tags B-, I- and O. A malformed I- begins an entity."""
    found, start = set(), 0
    for i, tag in enumerate([*tags, "O"]):
        before = tags[i - 1] if i else "O"
        if before != "O" and (tag[:2] != "I-" or tag[2:] != before[2:]):
            found.add((before[2:], start, i))
        if tag != "O" and (tag[:2] == "B-" or before == "O" or before[2:] != tag[2:]):
            start = i
    return found


def entity_f1(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> Score:
    """Return F1 of the entities. Its count, for the interval, is the number of entities in the data."""
    pairs = [(spans(a), spans(b)) for a, b in zip(predicted, gold, strict=True)]
    hits, told, there = (
        sum(map(len, part)) for part in ([a & b for a, b in pairs], *zip(*pairs, strict=True))
    )
    return Score(2 * hits / max(told + there, 1), there)
