"""The types of arguments of the Python interface, checked by their annotations."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from foveal.core.errors import UserError
from foveal.ui.console import truncate

NUMBERS: dict[Any, type] = {int: Integral, float: Real, Path: os.PathLike}
"""The types whose values stand for those of a type: NumPy has numbers of its own."""
WORDS = {
    NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    Sequence: "a list",
    Mapping: "a dict",
}
SHOWN_LETTERS = 60


def check_types(function: Callable[..., Any], named: Mapping[str, Any]) -> None:
    """Check that arguments have the types of their annotations.

    Raises: UserError: an argument has another type.
    """
    hints = _hints(function)
    for name, value in named.items():
        if name in hints and not _fits(value, hints[name]):
            shown = truncate(repr(value), SHOWN_LETTERS)
            raise UserError(f"{name}={shown}: expected {_describe(hints[name])}")


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value has a type. Items of lists and dicts are not looked at."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    kind = NUMBERS.get(hint, hint if origin is None else origin)
    if kind in (Integral, Real) and isinstance(value, bool):
        return False
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def _describe(hint: Any) -> str:
    """Return a type in words."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_describe, get_args(hint))))
    if origin is Literal:
        return " or ".join(map(repr, get_args(hint)))
    kind = hint if origin is None else origin
    return WORDS.get(kind, getattr(kind, "__name__", str(kind)))
