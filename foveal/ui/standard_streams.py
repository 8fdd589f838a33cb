"""Standard output and standard error of a command: of any encoding, closed, full, or without a reader.

Characters that the encoding of standard output lacks are written as escapes. An error of standard output has
the file name "standard output". Messages that standard error does not take are lost, and the command goes on.
"""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STDOUT_NAME = "standard output"
"""The file name in errors of standard output."""


class _ResultStream(io.FileIO):
    """The bytes of standard output."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = "closed" if error.errno == errno.EBADF else error.strerror
            raise OSError(error.errno, reason, STDOUT_NAME) from None


class _MessageStream(io.FileIO):
    """The bytes of standard error."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)


def prepare_standard_streams() -> None:
    """Replace the streams of this process. Streams that a caller has redirected in Python stay."""
    if sys.stdout is None:  # closed: reading of /dev/null takes its descriptor, so that no file gets it
        raw: io.FileIO = _ResultStream(os.open(os.devnull, os.O_RDONLY), "wb", closefd=False)
        sys.stdout = _text_stream(raw, "utf-8", line_buffering=False)
    elif _is_stream_of(sys.stdout, 1):
        raw = _ResultStream(1, "wb", closefd=False)
        sys.stdout = _text_stream(raw, sys.stdout.encoding, line_buffering=sys.stdout.isatty())
    if sys.stderr is None:
        raw = _MessageStream(os.open(os.devnull, os.O_RDONLY), "wb", closefd=False)
        sys.stderr = _text_stream(raw, "utf-8", line_buffering=True)
    elif _is_stream_of(sys.stderr, 2):
        raw = _MessageStream(2, "wb", closefd=False)
        sys.stderr = _text_stream(raw, sys.stderr.encoding, line_buffering=True)


@contextmanager
def passing_line(text: str) -> Iterator[None]:
    """Return a context that shows a line on the terminal of standard error, and takes it away at the end."""
    terminal = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
    if terminal is not None:
        terminal.write(text)
        terminal.flush()
    try:
        yield
    finally:
        if terminal is not None:
            terminal.write("\r\033[K")
            terminal.flush()


def drop_standard_output() -> None:
    """Forget what is not written yet, so that the end of the process does not try to write it again."""
    sys.stdout = None


def _is_stream_of(stream: object, descriptor: int) -> bool:
    try:
        return isinstance(stream, io.TextIOWrapper) and stream.fileno() == descriptor
    except (OSError, ValueError):
        return False


def _text_stream(raw: io.FileIO, encoding: str, line_buffering: bool) -> io.TextIOWrapper:
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer, encoding=encoding, errors="backslashreplace", newline="\n", line_buffering=line_buffering
    )
