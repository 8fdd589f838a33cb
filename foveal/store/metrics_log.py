"""Logs with one JSON object per line. Resuming truncates them, so that no line is repeated or lost."""

import errno
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from foveal.core.errors import UserError
from foveal.core.finite_json import finite_json
from foveal.store import durable
from foveal.store.regular_files import open_regular, read_regular


@dataclass(frozen=True)
class LogPosition:
    """The length of a log in bytes, and the sha256 of its content up to there.

    Checkpoints of older versions have no hash.
    """

    length: int = 0
    sha256: str | None = None


@runtime_checkable
class MetricsLog(Protocol):
    """A log of a run, as its training uses it."""

    def write(self, record: dict[str, Any]) -> None: ...

    def position(self) -> LogPosition: ...

    def sync(self) -> None: ...

    def truncate(self, position: LogPosition) -> None: ...

    def close(self) -> None: ...


class JsonlLog:
    """Appends lines to an existing file. Every line is handed to the operating system at once.

    Raises: UserError: the file is missing, a link or a special file.
    """

    def __init__(self, path: Path):
        self.path = path
        self._descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND)
        self._hash = hashlib.sha256()

    def write(self, record: dict[str, Any]) -> None:
        """Append a line. NaN and infinities, which JSON does not have, become null."""
        line = json.dumps(finite_json(record), allow_nan=False).encode() + b"\n"
        with durable.explain_disk_errors(self.path):
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._hash.update(line)

    def position(self) -> LogPosition:
        """Return the length and the hash of the file, for a checkpoint, before whose end it is synced."""
        return LogPosition(os.fstat(self._descriptor).st_size, self._hash.hexdigest())

    def sync(self) -> None:
        """Sync the file to the disk. Any thread may do so."""
        durable.sync_file(self.path)

    def truncate(self, position: LogPosition) -> None:
        """Remove the lines after `position`, which belong to steps that will be repeated.

        Raises: UserError: the file is shorter, or the lines before were edited.
        """
        content = read_regular(self.path)[: position.length]
        before = hashlib.sha256(content)
        if len(content) < position.length:
            raise UserError(
                f"{self.path}: shorter than its checkpoint says, so it was edited or replaced; restore it"
            )
        if position.sha256 not in (None, before.hexdigest()):
            raise UserError(
                f"{self.path}: its lines are not those that its checkpoint was saved with, so it was edited "
                "or damaged; restore it"
            )
        os.ftruncate(self._descriptor, position.length)
        self._hash = before

    def close(self) -> None:
        os.close(self._descriptor)
