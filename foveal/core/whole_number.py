"""Whole numbers on the command line."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token


def _read_whole_number(type_: type, tokens: Sequence[Token]) -> int:
    """Return the number that a token writes, where cyclopts would round 2.7.

    Raises: ValueError: the token is no whole number.
    """
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'"{text}": expected a whole number') from None


WholeNumber = Annotated[int, Parameter(converter=_read_whole_number)]
"""The type of an option that is a whole number."""
