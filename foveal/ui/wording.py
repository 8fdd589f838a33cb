"""Log lines in other words: functions of Python print what to call in place of commands to type."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_rewording: ContextVar[Callable[[str], str] | None] = ContextVar("rewording", default=None)


def is_reworded() -> bool:
    """Return whether lines are printed in other words."""
    return _rewording.get() is not None


def reword(line: str) -> str:
    """Return a line as it is to be printed."""
    rewording = _rewording.get()
    return line if rewording is None else rewording(line)


@contextmanager
def reworded(rewording: Callable[[str], str]) -> Iterator[None]:
    """Return a context in which lines are printed in the words that `rewording` returns."""
    token = _rewording.set(rewording)
    try:
        yield
    finally:
        _rewording.reset(token)
