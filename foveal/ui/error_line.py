"""The line in which a command says what went wrong."""

import sys

from foveal.core.terminal_text import escape_controls, shorten_middle

ERROR_PREFIX = "foveal: "
MAX_LENGTH = 2_000
"""Most characters of an error. Files and arguments can hold names and values of any length."""


def print_error(message: str) -> None:
    """Print a message in one line on standard error."""
    line = shorten_middle(" ".join(escape_controls(message).split()), MAX_LENGTH)
    if sys.stderr is not None and sys.stderr.isatty():
        from foveal.ui.console import STDERR  # takes a moment to import

        STDERR.print_wrapped(f"{ERROR_PREFIX}{line}")
    else:
        print(f"{ERROR_PREFIX}{line}", file=sys.stderr)
