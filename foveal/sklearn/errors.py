"""Errors in X and y: one line, a `foveal.UserError`, and of the type that scikit-learn expects."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from foveal.core.errors import UserError

MAX_LISTED_ROWS = 5
"""Rows that a message names."""


class InputError(UserError, ValueError):
    """A value of X or y can't be used."""


class InputTypeError(UserError, TypeError):
    """X or y is of a type that can't be used."""


@contextmanager
def plain_input_errors() -> Iterator[None]:
    """Return a context in which errors of scikit-learn's checks are user errors of one line."""
    try:
        yield
    except ValueError as error:
        raise InputError(" ".join(str(error).split())) from None
    except TypeError as error:
        raise InputTypeError(" ".join(str(error).split())) from None


def list_rows(rows: Sequence[int]) -> str:
    """Return rows in words, such as `row 3` or `rows 3, 4 and 5 more`."""
    first = ", ".join(map(str, rows[:MAX_LISTED_ROWS]))
    more = len(rows) - MAX_LISTED_ROWS
    return f"row{'s' if len(rows) > 1 else ''} {first}{f' and {more:,} more' if more > 0 else ''}"
