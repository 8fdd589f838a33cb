"""Handling of SIGINT and SIGTERM: they end a command at once, but training saves first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """Raised when the user or the system asks to stop.

    This is not an `Exception`, so that no library swallows it.
    """

    def __init__(self, number: int, where: str = "; nothing was saved"):
        super().__init__(f"stopped by {signal.Signals(number).name}{where}")
        self.number, self.where = number, where
        self.exit_code = 128 + number


class TrainingInterrupted(Interrupted):
    """Raised when a training has begun, so that its run can be resumed."""


class SignalHandler:
    """A context in which SIGINT and SIGTERM raise `Interrupted` at once.

    Inside `deferred`, the first signal waits for the next `poll`. The previous handlers are restored at the
    end. In another thread than the main one, signals are left alone.
    """

    def __init__(self) -> None:
        self.pending: int | None = None
        self.urgent = False
        """A second signal came: end at once and save nothing."""
        self._deferring = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "SignalHandler":
        if threading.current_thread() is not threading.main_thread():
            return self  # Python handles signals in the main thread alone
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Return a context in which a signal only sets a flag, and `poll` raises.

        A signal that is still pending at the end of the context is raised then.
        """
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        self.poll()

    def poll(self) -> None:
        """Raise `Interrupted` if a signal has arrived. Call this between steps and between evaluation
        batches."""
        if self.pending is not None:
            raise Interrupted(self.pending)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.urgent = self.pending is not None
        self.pending = number
        if self.urgent or not self._deferring:
            raise Interrupted(number)


@contextmanager
def signals_end_at_once() -> Iterator[None]:
    """Return a context in which SIGINT and SIGTERM end the process, also in a call that does not return to
    Python. A handler would wait for that.

    In another thread than the main one, signals are left alone.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
