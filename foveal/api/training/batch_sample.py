"""The sizes of some batches of an epoch, which may have rows of very different lengths."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foveal.data.core.split_data import evenly_spaced
from foveal.training.protocols import Batch, Batches

MOST_BATCHES = 16
MOST_SECONDS = 0.2
"""Seconds after which no more batches are made, as of large images."""
EQUAL_SIZES = 2
"""Sizes of batches of equal size: the last one of an epoch may be smaller."""


@dataclass(frozen=True)
class BatchSample:
    """Some batches of an epoch, evenly spaced."""

    first: Any
    largest: Any
    smallest: Any
    tokens: Sequence[int]
    """The tokens of each."""
    seconds: float
    """Seconds that it takes to make a batch."""

    @classmethod
    def of(cls, batches: Batches) -> "BatchSample":
        """Return a sample of the batches of the first epoch."""
        first = largest = smallest = batches.batch(0, 0)
        started = time.perf_counter()  # the first batch may read or look up what others only take
        tokens = [first.tokens]
        # The last one may be small, and would count too much among few.
        count = batches.per_epoch - (batches.per_epoch > MOST_BATCHES)
        for index in evenly_spaced(count, MOST_BATCHES)[1:]:
            batch = batches.batch(0, index)
            tokens.append(batch.tokens)
            largest = max(largest, batch, key=lambda each: each.tokens)
            smallest = min(smallest, batch, key=lambda each: each.tokens)
            if time.perf_counter() - started > MOST_SECONDS:
                break
        return cls(
            first, largest, smallest, tokens, (time.perf_counter() - started) / max(1, len(tokens) - 1)
        )

    @property
    def mean_tokens(self) -> float:
        return sum(self.tokens) / len(self.tokens)

    @property
    def another(self) -> Batch | None:
        """A batch of another size than the first if sizes vary: the largest, if the first is not."""
        if len(set(self.tokens)) <= EQUAL_SIZES:
            return None
        other: Batch = self.smallest if self.largest is self.first else self.largest
        return other
