r"""The lines of a file. A line that is not text has a reason instead, and does not affect other lines.

Only `\n` ends a line. Other characters that look like line ends belong to the text.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from foveal.data.core.rows import NOT_UTF8
from foveal.data.files.encodings import encoding_hint

MAX_LINE_BYTES = 1 << 20
"""Largest number of bytes of a row. Longer rows are taken to be damaged."""


class Line(NamedTuple):
    """A line. `text` includes the line end. `reason` says why the line is not text."""

    number: int
    text: str
    reason: str


class LineReader:
    """Iterates over the lines of a file. Lines longer than `max_bytes` are skipped without being kept in
    memory."""

    def __init__(
        self, readline: Callable[[int], bytes], max_bytes: int = MAX_LINE_BYTES, encoding: str | None = None
    ):
        """Read lines of UTF-8. Other lines are decoded by `encoding`.

        `encoding` is empty if the user can set it but has not, and None if there is no such setting.
        """
        self._readline, self._max_bytes, self._number = readline, max_bytes, 0
        self._encoding = encoding
        self._hint = "fix it, or convert the file with iconv" if encoding is None else ""
        self._ahead: deque[Line] = deque()

    def __iter__(self) -> "LineReader":
        return self

    def __next__(self) -> Line:
        if self._ahead:
            return self._ahead.popleft()
        data = self._readline(self._max_bytes + 1)
        if not data:
            raise StopIteration
        self._number += 1
        if len(data) > self._max_bytes:
            while data and not data.endswith(b"\n"):
                data = self._readline(self._max_bytes)
            return Line(self._number, "", too_long(self._max_bytes))
        try:
            return Line(self._number, data.decode("utf-8" if self._number > 1 else "utf-8-sig"), "")
        except UnicodeDecodeError as error:
            return self._decode(data, error.start)

    def _decode(self, data: bytes, position: int) -> Line:
        """Return a line that is not UTF-8 at byte `position`."""
        if not self._encoding:
            # The hint is that of the first such line, since guessing takes long.
            self._hint = self._hint or encoding_hint(data)
            return Line(self._number, "", f"{NOT_UTF8} at byte {position} of the line; {self._hint}")
        try:
            return Line(self._number, data.decode(self._encoding), "")
        except UnicodeDecodeError as error:
            reason = f"neither UTF-8 nor {self._encoding} at byte {error.start} of the line; fix it"
            return Line(self._number, "", reason)

    def unread(self, lines: Iterable[Line]) -> None:
        """Put back the last `lines`, which are then read again."""
        self._ahead.extendleft(reversed([*lines]))


def too_long(max_bytes: int) -> str:
    """Return the reason why a row of more than `max_bytes` is not used."""
    return f"longer than {max_bytes:,} bytes; cut it into several rows"
