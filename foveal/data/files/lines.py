"""The lines of a file, each as text or with the reason why it is none, whatever the others hold.

Only `\\n` ends a line: the other characters that look like line ends belong to the text.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

MAX_LINE_BYTES = 1 << 20
"""Bytes of the longest row that is taken; what is longer is damage."""


class Line(NamedTuple):
    """`text` with its end; or `reason` it is none."""

    number: int
    text: str
    reason: str


class LineReader:
    """The lines that a file's `readline` gives; one longer than `max_bytes` bytes is passed over unheld."""

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
            why = f"not UTF-8 at byte {error.start} of the line; mend it, or convert the file with iconv"
            return Line(self._number, "", why)

    def unread(self, lines: Iterable[Line]) -> None:
        """The last lines taken, to be taken again."""
        self._ahead.extendleft(reversed([*lines]))
