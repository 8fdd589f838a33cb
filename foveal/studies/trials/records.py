"""The log of a training that another process writes, read as it grows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foveal.core.parse_json import parse_json

Record = dict[str, Any]
"""A line of metrics.jsonl."""


class LogFollower:
    """Yields the lines of a growing log, each once.

    A resumed training truncates its log to the last checkpoint, and writes the lines from there on again.
    """

    def __init__(self, path: Path):
        self.path = path
        self._read = 0

    def new_records(self) -> Iterator[Record]:
        """Yield the records of the whole lines that were written since the last call."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            size = file.seek(0, 2)
            begin = min(self._read, size)
            file.seek(max(0, begin - 1))
            if begin and file.read(1) != b"\n":  # truncated and written anew: go on with the next whole line
                begin += len(file.readline())
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read = begin + len(whole) + len(newline)
        for line in whole.splitlines():
            yield parse_json(line)
