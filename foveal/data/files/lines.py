r"""The lines of a file. A line that is not text has a reason instead, and does not affect other lines.

Only `\n` ends a line. Other characters that look like line ends belong to the text.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

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

    def __init__(self, readline: Callable[[int], bytes], max_bytes: int = MAX_LINE_BYTES):
        self._readline, self._max_bytes, self._number = readline, max_bytes, 0
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
            return Line(self._number, "", f"longer than {self._max_bytes:,} bytes; cut it into several rows")
        try:
            return Line(self._number, data.decode("utf-8" if self._number > 1 else "utf-8-sig"), "")
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 at byte {error.start} of the line; fix it, or convert the file with iconv"
            return Line(self._number, "", reason)

    def unread(self, lines: Iterable[Line]) -> None:
        """Put back the last `lines`, which are then read again."""
        self._ahead.extendleft(reversed([*lines]))
