"""Work in pieces, watched while it is done."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

ProgressCallback = Callable[[int, int], None]
"""Called with (i, n) before piece i of n begins; an exception that it raises ends the work."""


@runtime_checkable
class Plan(Protocol):
    """The part of a training plan that a screen shows."""

    @property
    def total_steps(self) -> int: ...


@runtime_checkable
class EpochBatches(Protocol):
    """The part of `training.protocols.Batches` that a single pass needs."""

    @property
    def per_epoch(self) -> int: ...

    def batch(self, epoch: int, index: int) -> Any: ...


def no_progress(index: int, total: int) -> None:
    """Watch nothing: for work that takes almost no time."""


def iterate_batches(batches: EpochBatches, progress: ProgressCallback) -> Iterator[Any]:
    """Yield each batch of the first epoch once."""
    for index in range(batches.per_epoch):
        progress(index, batches.per_epoch)
        yield batches.batch(0, index)
