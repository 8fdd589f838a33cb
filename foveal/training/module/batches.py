"""A user's batches as `Batches` of the trainer, and what a checkpoint stores of the place in them.

A list, and a function of (epoch, index), are pure functions. All other sources are read in order. The place
in them is stored with a checkpoint, and is restored after a resume by the source's own `load_state_dict`, or
by reading the epoch up to there again. Random numbers are seeded by the position before each batch, so the
order in which a DataLoader shuffles is then the same. A hash of the last batch shows whether that holds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log, log_progress
from foveal.core.runtime import seed_everything
from foveal.core.state import State
from foveal.training.module.batch import ModuleBatch, WeightFunction, content_hash, leaves, make_batch
from foveal.training.module.loader_state import generator_of, has_state, load_loader_state, loader_state
from foveal.training.protocols import BatchesExhausted

UNKNOWN_LENGTH = 10**400
"""The batches of an epoch of unknown length, before its end: the share of it that is done is 0.0."""
READ_FROM_START: dict[str, Any] = dict.fromkeys(("length", "hash", "generator", "loader")) | {
    "epoch_start": 0
}
"""The place of a position that is found by reading all batches before it again."""


@dataclass(frozen=True)
class BatchOptions:
    """What all sources of a training share."""

    device: torch.device
    seed: int
    log: Log
    weight: WeightFunction | None = None
    is_compared: bool = False
    """Whether several processes compare the batches that they read."""

    def batch(self, value: Any) -> ModuleBatch:
        """Return a user's batch as the trainer sees it."""
        return make_batch(value, self.device, self.weight, self.is_compared)


@dataclass(frozen=True)
class FunctionBatches:
    """Batches that are a function of (epoch, index), such as those of a list."""

    function: Callable[[int, int], Any]
    per_epoch: int
    options: BatchOptions

    def batch(self, epoch: int, index: int) -> ModuleBatch:
        """Return a batch. Random numbers that the function draws depend on (seed, epoch, index)."""
        seed_everything(self.options.seed, "batches", epoch, index)
        return self.options.batch(self.function(epoch, index))


@dataclass
class IterableBatches:
    """Batches of an iterable in their order, one epoch after another.

    An epoch ends where the iterable ends, whatever its length says. `batch` is called with rising positions;
    the last batch may be asked for again.
    """

    source: Iterable[Any]
    options: BatchOptions
    length: int | None
    """The length of the iterable, if it has any."""
    position: int = 0
    """The number of batches that were read, in all epochs."""
    epoch_start: int = 0
    """The position at the beginning of this epoch."""
    _iterator: Iterator[Any] | None = None
    _last: ModuleBatch | None = None
    _last_leaves: Sequence[Any] = ()
    _generator_state: Tensor | None = None
    """The state of the source's own random generator at the beginning of this epoch."""

    @property
    def per_epoch(self) -> int:
        """The length of an epoch: as the source says, else as the first epoch was."""
        return self.length or UNKNOWN_LENGTH

    def batch(self, epoch: int, index: int) -> ModuleBatch:
        """Return a batch.

        Raises: UserError: the source is empty.
        Raises: BatchesExhausted: the source can be read only once, and is at its end.
        """
        position = epoch * self.per_epoch + index
        if self._last is None or position == self.position:
            assert position == self.position, f"batch {position} after batch {self.position - 1}"
            self._last = self.options.batch(self._read())
        assert position == self.position - 1, f"batch {position} after batch {self.position - 1}"
        return self._last

    @property
    def _has_whole_state(self) -> bool:
        """Return whether the state of the source has all of its place, that of a random generator too."""
        return has_state(self.source) and generator_of(self.source) is None

    def place(self, position: int) -> State:
        """Return what finds a position again; None at the beginning."""
        if position == 0:
            return None
        if position != self.position:  # in the middle of a step
            return READ_FROM_START
        return {
            "length": self.length,
            "epoch_start": self.epoch_start,
            "hash": content_hash(self._last_leaves),
            "generator": self._generator_state,
            "loader": loader_state(self.source, self.options.log) if self._has_whole_state else None,
        }

    def go_to(self, position: int, place: State) -> None:
        """Go to a position, at the place that was stored for it. Say so if the order is not kept."""
        self._iterator = None
        if position == 0:
            self.position = self.epoch_start = 0
            return
        place = place or READ_FROM_START
        self.length = self.length or place["length"]
        if place["loader"] is not None and self._has_whole_state:
            load_loader_state(self.source, place["loader"])
            self.position, self.epoch_start = position, place["epoch_start"]
            return
        self.position = self.epoch_start = place["epoch_start"]
        generator, count, log = generator_of(self.source), position - self.position, self.options.log
        if generator is not None and place["generator"] is not None:
            generator.set_state(place["generator"])
        log(f"reading {count:,} batches again, to go on after them")
        for value in log_progress((self._read() for _ in range(count)), count, "batches", log):
            self._last = self.options.batch(value)
        if place["hash"] and content_hash(self._last_leaves) != place["hash"]:
            log(
                "train gives other batches than before the stop: the training goes on, but the order of its "
                "batches is not kept (lists, functions of (epoch, index) and loaders with state_dict keep it)"
            )

    def _read(self) -> Any:
        """Return the next batch of the source, of a new epoch if this one is at its end.

        Raises: UserError: there is none.
        """
        try:
            value = self._next()
        except StopIteration:
            self._end_epoch()
            try:
                value = self._next()
            except StopIteration:
                if not self.position:
                    raise UserError("train is empty: it gave no batch") from None
                raise UserError(
                    f"train: no batch after the first {self.position:,}: give a source that can be read "
                    "again, such as a list, a DataLoader or a function that makes an iterator"
                ) from None
        self.position += 1
        self._last_leaves = [*leaves(value)]
        return value

    def _next(self) -> Any:
        """Return the next batch of this epoch, with random numbers that depend on (seed, position)."""
        seed_everything(self.options.seed, "batches", self.position)
        if self._iterator is None:
            if (generator := generator_of(self.source)) is not None:
                self._generator_state = generator.get_state()
            self._iterator = iter(self.source)
        return next(self._iterator)

    def _end_epoch(self) -> None:
        """End this epoch.

        Raises: BatchesExhausted: the source can be read only once.
        """
        count = self.position - self.epoch_start
        if count and isinstance(self.source, Iterator):
            raise BatchesExhausted(
                f"train is an iterator, and gave all of its {self.position:,} batches before the budget was "
                "spent: give a list, a DataLoader, or the function that makes the iterator"
            )
        if self.length is None:
            self.length = count or None
        elif count != self.length and self.epoch_start == 0:
            self.options.log(
                f"train ended after {count:,} batches, though its length is {self.length:,}: that is an epoch"
            )
        self.epoch_start, self._iterator = self.position, None


@dataclass
class HeldOutBatches:
    """Batches of an iterable that is read from its beginning in each evaluation.

    Of several processes, each asks for some of the batches, in order.
    """

    source: Iterable[Any]
    per_epoch: int
    options: BatchOptions
    _iterator: Iterator[Any] | None = None
    _position: int = 0

    def batch(self, epoch: int, index: int) -> ModuleBatch:
        """Return a batch. Those before it that were not asked for are read, too.

        Raises: UserError: there are fewer than its length says.
        """
        if self._iterator is None or index == 0 or index < self._position:
            self._iterator, self._position = iter(self.source), 0
        try:
            for position in range(self._position, index + 1):
                seed_everything(self.options.seed, "valid", position)
                value = next(self._iterator)
                self._position = position + 1
        except StopIteration:
            raise UserError(
                f"valid ended after {self._position:,} batches, though its length is {self.per_epoch:,}: "
                "mend that"
            ) from None
        return self.options.batch(value)
