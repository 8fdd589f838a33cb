"""What a work says of itself, line by line."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
Log = Callable[[str], None]
"""What tells a person one line."""
SECONDS_PER_LINE = 10.0
"""Seconds from one line to the next."""


def log_progress(rows: Iterable[T], count: int, what: str, log: Log) -> Iterator[T]:
    """The rows; now and then `log` tells how many of `count` there are, as in "4,000 of 20,000 maps", and
    when the rest will be."""
    began = last = time.monotonic()
    for number, row in enumerate(rows):
        now = time.monotonic()
        if number and now > last + SECONDS_PER_LINE:
            last = now
            left = (now - began) / number * (count - number)
            log(f"{number:,} of {count:,} {what}, about {left:.0f} s left")
        yield row
