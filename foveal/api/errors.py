"""Errors of the Python interface: the same lines as on the command line, as exceptions."""

from collections.abc import Iterator
from contextlib import contextmanager

from foveal.config import ConfigError
from foveal.core.errors import UserError
from foveal.store.cache import shorten_unpacked_paths


@contextmanager
def plain_errors() -> Iterator[None]:
    """Return a context, also a decorator, in which errors of settings are `UserError`, and rows of values in
    memory are named by their index."""
    try:
        yield
    except (ConfigError, UserError) as error:
        message = shorten_unpacked_paths(str(error))
        if isinstance(error, UserError) and message == str(error):
            raise
        raise UserError(message) from error
