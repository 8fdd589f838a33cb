"""The type checker of the tests: beartype, which reads each signature once.

A function inside another one is made anew at each call of the outer one. To read its signature each time
takes a millisecond.
"""

from collections.abc import Callable
from typing import Any

from beartype import beartype

_nested: dict[tuple[str, str, str], Callable[..., Any]] = {}


def check_types(signature: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks its arguments. `signature` is jaxtyping's function without a body of its
    own, which depends on names and annotations alone."""
    if "<locals>" not in signature.__qualname__:
        return beartype(signature)
    key = (signature.__module__, signature.__qualname__, str(signature.__annotations__))
    if key not in _nested:
        _nested[key] = beartype(signature)
    return _nested[key]
