"""Logs with one JSON object per line. Resuming truncates them, so that no line is repeated or lost."""

import errno
import json
import os
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.core.finite_json import finite_json
from foveal.store import durable


class JsonlLog:
    """Appends lines to an existing file. Every line is handed to the operating system at once."""

    def __init__(self, path: Path):
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)

    def write(self, record: dict[str, Any]) -> None:
        """Append a line. NaN and infinities, which JSON does not have, become null."""
        line = json.dumps(finite_json(record), allow_nan=False).encode() + b"\n"
        with durable.explain_disk_errors(self.path):
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def offset(self) -> int:
        """Sync the file, and return its length, for the checkpoint."""
        with durable.explain_disk_errors(self.path):
            os.fsync(self._descriptor)
        return os.fstat(self._descriptor).st_size

    def truncate(self, offset: int) -> None:
        """Remove the lines after `offset`, which belong to steps that will be repeated.

        Raises: UserError: the file is shorter than `offset`.
        """
        if os.fstat(self._descriptor).st_size < offset:
            raise UserError(
                f"{self.path}: shorter than its checkpoint says, so it was edited or replaced; restore it"
            )
        os.ftruncate(self._descriptor, offset)

    def close(self) -> None:
        os.close(self._descriptor)
