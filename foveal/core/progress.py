"""Callbacks that report the progress of work, and iteration over batches with such a callback."""

from collections.abc import Callable, Iterator
from typing import Any

from foveal.training.protocols import Batches

ProgressCallback = Callable[[int, int], None]
"""Called with (i, n) before part i of n begins. An exception that it raises ends the work."""


def no_progress(index: int, total: int) -> None:
    """Do nothing: the callback for work that takes hardly any time."""


def iterate_batches(batches: Batches, progress: ProgressCallback) -> Iterator[Any]:
    """Yield each batch of one epoch."""
    for index in range(batches.per_epoch):
        progress(index, batches.per_epoch)
        yield batches.batch(0, index)
