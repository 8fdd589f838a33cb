"""Work in pieces, watched while it is done."""

from collections.abc import Callable, Iterator
from typing import Any

from foveal.training.protocols import Batches

ProgressCallback = Callable[[int, int], None]
"""Told of piece i of n before it begins; what it raises ends the work."""


def no_progress(index: int, total: int) -> None:
    """For work that takes no time to speak of."""


def iterate_batches(batches: Batches, progress: ProgressCallback) -> Iterator[Any]:
    """Each batch of an epoch once."""
    for index in range(batches.per_epoch):
        progress(index, batches.per_epoch)
        yield batches.batch(0, index)
