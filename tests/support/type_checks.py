"""How tests check types and shapes: the annotations of the whole package, by jaxtyping and beartype.

In each test, the first calls of each function are checked, and a few of the later ones: to check all would
take as long as the tests themselves.
"""

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import jaxtyping
from beartype._check.code import codemain
from jaxtyping import config

FIRST_CALLS, EVERY = 2, 50
"""The checked calls of a function in a test: so many at its start, and of the later ones each fiftieth."""
_check = jaxtyping.jaxtyped
_calls: Counter[str] = Counter()
"""The calls of each function in this test."""


def install_type_checks() -> None:
    """Check the types of the package's functions from now on."""
    jaxtyping.jaxtyped = jaxtyped  # type: ignore[assignment]
    # beartype checks one element of a list, by chance. With its own random numbers it changes no others.
    codemain.getrandbits = Random(0).getrandbits  # type: ignore[attr-defined]
    jaxtyping.install_import_hook("foveal", "beartype.beartype")


def forget_calls() -> None:
    """Begin a test."""
    _calls.clear()


def jaxtyped(function: Any = None, *, typechecker: Any = None) -> Any:
    """Return a function some of whose calls are checked, or a class whose arguments are.

    This stands in for `jaxtyping.jaxtyped`, with which the import hook decorates every function and class.
    """
    if function is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if not inspect.isfunction(function):
        return _check(function, typechecker=typechecker)
    return _sampled(function, lambda: _check(function, typechecker=typechecker))


def _sampled(
    function: Callable[..., Any], make_checked: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """Return a function some of whose calls are checked.

    A function inside another one is made anew at each call of the outer one. So the checked one is made when
    it is first needed.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    checked: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def sampled(*args: Any, **kwargs: Any) -> Any:
        if config.jaxtyping_disable:
            return function(*args, **kwargs)
        _calls[name] += 1
        if _calls[name] > FIRST_CALLS and _calls[name] % EVERY:
            return function(*args, **kwargs)
        if not checked:
            checked.append(make_checked())
        return checked[0](*args, **kwargs)

    return sampled
