"""Errors of the Python interface: the lines of the command line, in words of Python, as exceptions."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from foveal.api.argument_types import check_types
from foveal.api.arguments import check_arguments
from foveal.api.python_words import PythonWords
from foveal.config import ConfigError
from foveal.core.errors import UserError
from foveal.store.cache import shorten_unpacked_paths
from foveal.ui.wording import is_reworded, reworded

P = ParamSpec("P")
R = TypeVar("R")


def plain_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of the Python interface.

    Errors of settings are `UserError`, and rows of values in memory are named by their index. Errors and log
    lines name arguments in place of options. An error is raised from here, without the calls below. A wrong
    argument is a `UserError`, too.
    """
    words = PythonWords(function)

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        check_arguments(words, arguments, keywords)
        check_types(function, dict(zip(words.parameters, arguments, strict=False)) | keywords)
        if is_reworded():  # another function of the interface has called this one
            return function(*arguments, **keywords)
        try:
            with reworded(words.log_line):
                return function(*arguments, **keywords)
        except (ConfigError, UserError) as error:
            plain = _plain_error(error, words)
        raise plain.with_traceback(None)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def _plain_error(error: Exception, words: PythonWords) -> UserError:
    """Return an error in words of Python. Of what caused it, only an exception of the user's code is kept."""
    message = words.message(shorten_unpacked_paths(str(error)))
    if isinstance(error, UserError):
        cause = None if isinstance(error.__cause__, (UserError, ConfigError)) else error.__cause__
        plain = error if message == str(error) else type(error)(message)
    else:
        cause, plain = None, UserError(message)
    plain.__cause__, plain.__suppress_context__ = cause, True
    return plain
