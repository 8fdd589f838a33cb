"""Panics of libraries in Rust, which are no `Exception` and print a traceback of their own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

STDERR_DESCRIPTOR = 2


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Return a context in which a panic becomes a ValueError, and nothing reaches standard error.

    Panics come from files that the library takes to be impossible.

    Raises: ValueError: the library panicked.
    """
    try:
        stderr = os.dup(STDERR_DESCRIPTOR)
    except OSError:  # standard error is closed
        stderr = None
    if stderr is not None:
        with open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), STDERR_DESCRIPTOR)
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"the library that reads it failed: {error}") from None
    finally:
        if stderr is not None:
            os.dup2(stderr, STDERR_DESCRIPTOR)
            os.close(stderr)
