"""Regular files of a run: a link or a special file is refused, never followed, written to or waited for."""

import errno
import os
import stat
from pathlib import Path

from foveal.core.errors import UserError

CHECKPOINTS_FOLDER = "checkpoints"
"""The only name in a run that may be a link: users keep checkpoints on a larger disk."""


def regular_file_flags() -> int:
    """Return flags of `os.open`, those that this system has: follow no link, don't wait, keep line ends."""
    names = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
    return sum(getattr(os, name, 0) for name in names)


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return the descriptor of a regular file, which is created if `flags` say so.

    Raises: UserError: the file is missing, a link or a special file.
    """
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise _not_regular(path, "a link")
    try:
        descriptor = os.open(path, flags | regular_file_flags(), 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _not_regular(path, "a link") from None
        if error.errno == errno.ENXIO:
            raise _not_regular(path, "a special file") from None
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path, "a folder or a special file")
    return descriptor


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises: UserError: the file is missing, a link or a special file.
    """
    with open(open_regular(path), "rb") as file:
        return file.read()


def check_only_regular(folder: Path) -> None:
    """Check that everything below a run folder is a regular file or a folder, except that `checkpoints` may
    be a link to a folder.

    Raises: UserError: something is a link or a special file.
    """
    for parent, folders, files in os.walk(folder):  # os.walk does not enter links
        for name in (*folders, *files):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if path == folder / CHECKPOINTS_FOLDER and path.is_dir():
                continue
            if stat.S_ISLNK(mode):
                raise _not_regular(path, "a link")
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise _not_regular(path, "a special file")


def _not_regular(path: Path, kind: str) -> UserError:
    return UserError(f"{path}: {kind}, but a run has only files of its own; replace it by a copy of the file")
