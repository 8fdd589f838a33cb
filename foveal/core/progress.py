"""Work in pieces, watched while it is done."""

from collections.abc import Callable, Iterator
from typing import Any

from foveal.training.protocols import Batches

Watch = Callable[[int, int], None]
"""Told of piece i of n before it begins; what it raises ends the work."""


def unwatched(piece: int, pieces: int) -> None:
    """For work that takes no time to speak of."""


def every_batch(batches: Batches, watch: Watch) -> Iterator[Any]:
    """Each batch of an epoch once."""
    for index in range(batches.per_epoch):
        watch(index, batches.per_epoch)
        yield batches.batch(0, index)
