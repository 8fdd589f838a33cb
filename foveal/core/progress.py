"""Callbacks that report the progress of work, and iteration over batches with such a callback."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")

ProgressCallback = Callable[[int, int], None]
"""Called with (i, n) before part i of n begins. An exception that it raises ends the work."""


class SecondsLeft(NamedTuple):
    """The time that a training still takes: in steps, and in evaluations, checkpoints and the test."""

    steps: float
    others: float


@runtime_checkable
class HasTotalSteps(Protocol):
    """The part of a training plan that a screen shows."""

    @property
    def total_steps(self) -> int: ...


@runtime_checkable
class EpochBatches(Protocol):
    """The part of `training.protocols.Batches` that a single pass needs."""

    @property
    def per_epoch(self) -> int: ...

    def batch(self, epoch: int, index: int) -> Any: ...


_rows_read = [0]


def count_rows(rows: Iterable[T]) -> Iterator[T]:
    """Yield the rows of data, and count them for whoever shows the progress."""
    for row in rows:
        _rows_read[0] += 1
        yield row


def read_rows() -> int:
    """Return the number of rows that this process has read so far."""
    return _rows_read[0]


def no_progress(index: int, total: int) -> None:
    """Do nothing: the callback for work that takes almost no time."""


def iterate_batches(batches: EpochBatches, progress: ProgressCallback) -> Iterator[Any]:
    """Yield each batch of one epoch."""
    for index in range(batches.per_epoch):
        progress(index, batches.per_epoch)
        yield batches.batch(0, index)
