"""Writing files so that a crash at any instant leaves the old content or the new, never a mixture.

Every write that matters goes through these few functions (and they through `os`), so tests can record
them, replay every prefix, and make any of them fail.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foveal.core.errors import RunFailed
from foveal.store.locks import lock


def write_synced(path: Path, content: bytes) -> None:
    """Write a file that no reader looks at yet, through to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def atomic_write(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step: readers see the old file or the new one."""
    temporary = path.with_name(f".{path.name}.part")
    with explain_disk_errors(path):
        write_synced(temporary, content)
        os.replace(temporary, path)
        sync_folder(path.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; it appears at `path`, complete, when the block ends, and not at all if it fails.

    The files inside are to be written with `write_synced`. `path` must not exist. Errors: RunFailed where it
    can't be written, or another process is making it.
    """
    temporary = path.with_name(f".{path.name}.part")
    with explain_disk_errors(path), _exclusive_folder(temporary):
        try:
            yield temporary
            for folder, _, _ in os.walk(temporary, topdown=False):
                sync_folder(Path(folder))
            os.rename(temporary, path)
            sync_folder(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextmanager
def _exclusive_folder(folder: Path) -> Iterator[None]:
    """An empty folder that only this process fills. What one that was killed has left in it is removed."""
    os.makedirs(folder, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        held = lock(descriptor, wait=False)
        # Between the two lines above another process may have finished: then the folder is elsewhere.
        if not held or not folder.exists() or not os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            raise FileExistsError(errno.EEXIST, "another process is making it")
        for found in folder.iterdir():
            shutil.rmtree(found) if found.is_dir() else os.unlink(found)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def explain_disk_errors(path: Path) -> Iterator[None]:
    """Say which path could not be written, and how much room is left there."""
    try:
        yield
    except OSError as error:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        free = shutil.disk_usage(folder).free
        raise RunFailed(f"{path}: can't write: {error.strerror} ({free / 1e6:,.0f} MB free)") from error


def file_sha256(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
