"""Files that the page sends: one at a time, in a temporary folder that ends with the server."""

import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from foveal.core.errors import UserError

MAX_BYTES = 64 * 2**20
"""The largest file that the page may send."""
MAX_FILES = 50
PREFIX = "upload:"
"""The value of an option that names such a file."""
MAX_NAME = 80


class Uploads:
    """The files that the page has sent, by number."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="foveal-page-")
        self._files: dict[str, Path] = {}

    async def save(self, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Write a file. Return the value that stands for it in an option.

        Raises: UserError: the file is too large, or there are too many.
        """
        if len(self._files) >= MAX_FILES:
            raise UserError(f"{name}: {MAX_FILES} files were sent already; start the page anew")
        folder = Path(self._folder.name, str(len(self._files)))
        folder.mkdir()
        path = folder / _safe_name(name)
        size = 0
        with path.open("wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > MAX_BYTES:
                    file.close()
                    path.unlink()
                    folder.rmdir()
                    raise UserError(
                        f"{name}: larger than {MAX_BYTES // 2**20} MB; name its path in place of it"
                    )
                file.write(chunk)
        reference = f"{PREFIX}{len(self._files)}"
        self._files[reference] = path
        return reference

    def resolve(self, value: str) -> str:
        """Return the path of a sent file; any other value unchanged.

        Raises: UserError: there is no such file.
        """
        if not value.startswith(PREFIX):
            return value
        if value not in self._files:
            raise UserError("the file was sent to an earlier page; choose it again")
        return str(self._files[value])

    def names(self) -> dict[str, str]:
        """Return the names of the sent files, by their paths."""
        return {str(path): path.name for path in self._files.values()}

    def clean_up(self) -> None:
        """Delete all files."""
        self._folder.cleanup()


def _safe_name(name: str) -> str:
    """Return a name without folders and unusual letters; its ending says what is in the file."""
    letters = re.sub(r"[^\w.-]", "_", name.replace("\\", "/").rpartition("/")[2])
    return letters.lstrip(".")[-MAX_NAME:] or "file"
