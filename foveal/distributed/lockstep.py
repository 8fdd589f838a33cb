"""The slots of a process, computed one after another, or in turn where they wait for each other.

A slot runs until its end, unless it needs the values of all slots, as batch norm does. Then it waits, and the
next slot runs. Only one slot runs at a time. Each has a random generator and gradients of its own.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from foveal.core.runtime import random_state, restore_random_state
from foveal.core.whole_batch import Slot, set_current_slot
from foveal.distributed.world import World

Result = TypeVar("Result")


class _Stopped(BaseException):
    """Ends a slot that waits for a slot that failed."""


def run_slots(
    works: Sequence[Callable[[], Result]], first: int, slots: int, weights: Sequence[Tensor], world: World
) -> list[Result]:
    """Return the result of each work, which computes a slot of this process. `first` is the number of the
    first slot.

    Of all `slots`, those of other ranks are computed elsewhere. The gradients of `weights` are those of the
    current slot.
    """
    if slots == 1:
        return [works[0]()]
    try:
        if len(works) == 1:
            set_current_slot(Slot(first, world.gather, keeps_statistics=True))
            return [works[0]()]
        if world.shares_weights:  # a slot that waits would keep the other ranks from computing
            return [work() for work in works]
        return _Turns(works, first, weights, world).run()
    finally:
        set_current_slot(None)


class _Turns(Generic[Result]):
    """Slots that run in threads, one at a time."""

    def __init__(
        self, works: Sequence[Callable[[], Result]], first: int, weights: Sequence[Tensor], world: World
    ):
        self.weights, self.world = weights, world
        self.threads = [_SlotThread(work, first + index, index == 0) for index, work in enumerate(works)]

    def run(self) -> list[Result]:
        try:
            while True:
                for thread in self.threads:
                    self._let_run(thread)
                if all(thread.finished for thread in self.threads):
                    return [thread.result for thread in self.threads]
                if any(thread.finished for thread in self.threads):
                    raise RuntimeError("some slots of a batch read the whole batch, and some do not")
                self._answer()
        except BaseException:
            for thread in self.threads:
                thread.stop()
            raise

    def _let_run(self, thread: "_SlotThread[Result]") -> None:
        """Run a slot until it waits or ends, with its own random generator and gradients."""
        set_current_slot(thread.slot)
        if thread.random_state is not None:
            restore_random_state(thread.random_state)
        for weight, gradient in zip(
            self.weights, thread.gradients or [None] * len(self.weights), strict=True
        ):
            weight.grad = gradient
        thread.go_on()
        if thread.error is not None:
            raise thread.error
        if not thread.finished:
            thread.random_state = random_state()
            thread.gradients = [weight.grad for weight in self.weights]

    def _answer(self) -> None:
        """Give each waiting slot the values of all slots of all ranks."""
        own = torch.stack([thread.sent for thread in self.threads])
        everyone = self.world.gather(own).flatten(0, 1)
        for thread in self.threads:
            thread.received = everyone


class _SlotThread(Generic[Result]):
    """The thread of a slot, which runs only between `go_on` and the next wait."""

    result: Result

    def __init__(self, work: Callable[[], Result], index: int, keeps_statistics: bool):
        self.work, self.slot = work, Slot(index, self._gather, keeps_statistics)
        self.random_state: Any = None
        self.gradients: list[Tensor | None] | None = None
        self.sent, self.received = torch.empty(0), torch.empty(0)
        self.finished, self.stopped = False, False
        self.error: BaseException | None = None
        self._turn, self._waits = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def go_on(self) -> None:
        """Run until the slot waits or ends."""
        if self._thread is None:
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)
            self._thread.start()
        else:
            self._turn.release()
        self._waits.acquire()

    def stop(self) -> None:
        """End a slot that waits."""
        if self._thread is not None and not self.finished and self.error is None:
            self.stopped = True
            self.go_on()

    def _run(self) -> None:
        try:
            self.result = self.work()
            self.finished = True
        except BaseException as error:
            self.error = error
        finally:
            self._waits.release()

    def _gather(self, x: Tensor) -> Tensor:
        self.sent = x
        self._waits.release()
        self._turn.acquire()
        if self.stopped:
            raise _Stopped
        return self.received
