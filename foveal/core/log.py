"""Log lines that tell a user about the progress of long work."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
Log = Callable[[str], None]
"""A function that shows one line to the user."""
SECONDS_PER_LINE = 10.0
"""Seconds between two lines."""
_listeners: list[Log] = []


def notify_with(log: Log) -> None:
    """Show by `log` from now on what code without a log of its own tells."""
    _listeners[:] = [log]


def notify(message: str) -> None:
    """Tell the user about unexpected long work deep in the code, such as the compilation of a kernel."""
    for log in _listeners:
        log(message)


def each_once(log: Log) -> Log:
    """Return a function that shows each line only the first time it is told."""
    shown = set[str]()

    def log_new(line: str) -> None:
        if line not in shown:
            shown.add(line)
            log(line)

    return log_new


def log_progress(rows: Iterable[T], count: int, noun: str, log: Log) -> Iterator[T]:
    """Yield the rows, and log from time to time how many of `count` are done and the time left.

    A line looks like "4,000 of 20,000 maps, about 12 s left".
    """
    began = last = time.monotonic()
    for number, row in enumerate(rows):
        now = time.monotonic()
        if number and now > last + SECONDS_PER_LINE:
            last = now
            seconds_left = (now - began) / number * (count - number)
            log(f"{number:,} of {count:,} {noun}, about {seconds_left:.0f} s left")
        yield row
