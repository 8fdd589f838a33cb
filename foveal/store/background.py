"""Work that a thread does beside the training, one at a time, and whose errors are not lost."""

from collections.abc import Callable, Iterable, Iterator
from threading import Thread
from typing import TypeVar

Piece = TypeVar("Piece")


class Abandoned(Exception):
    """The work was given up before its end."""


class Background:
    """Does one work at a time in a thread of its own."""

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._error: BaseException | None = None
        self._abandoned = False

    def start(self, work: Callable[[], object]) -> None:
        """Begin a work, after the one before has ended, whose error is raised."""
        self.wait()

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._error = error

        self._thread = Thread(target=run, name="foveal-files", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def poll(self) -> None:
        """Raise the error of the work, if it has ended with one."""
        if self._thread is not None and not self._thread.is_alive():
            self.wait()

    def wait(self) -> None:
        """Wait for the end of the work, and raise its error."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def abandon(self) -> None:
        """End the work before its next piece, and wait for that. Its error is that it was given up."""
        self._abandoned = True
        try:
            self.wait()
        except Exception:  # nobody waits for this work any more
            pass
        finally:
            self._abandoned = False

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield the pieces of the work.

        Raises: Abandoned: it is given up.
        """
        for piece in pieces:
            self._check()
            yield piece
        self._check()

    def _check(self) -> None:
        if self._abandoned:
            raise Abandoned
