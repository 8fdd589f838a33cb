"""Writing of files such that a crash at any instant leaves the old content or the new content, never a
mixture.

Every write that matters uses these few functions, which use `os`. Tests can therefore record the writes,
replay every prefix, and make any write fail.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foveal.core.errors import RunFailed
from foveal.store.locks import lock
from foveal.store.regular_files import regular_file_flags

Chunk = bytes | bytearray | memoryview
"""A piece of the content of a file."""


def write_synced(path: Path, *chunks: Chunk) -> None:
    """Write a file that has no readers yet, and sync it to the disk. A link at `path` is not followed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | regular_file_flags(), 0o644)
    try:
        for chunk in chunks:
            remaining = memoryview(chunk)
            while remaining:
                remaining = remaining[os.write(descriptor, remaining) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Sync a file to the disk that other functions have written."""
    with explain_disk_errors(path):
        descriptor = os.open(path, os.O_RDWR | regular_file_flags())
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the names in the folder are durable. On Windows there is no such call."""
    if not _can_open_folders():
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def atomic_write(path: Path, *chunks: Chunk) -> None:
    """Replace the content of `path` in one step. Readers see the old file or the new one.

    If that fails, nothing is left beside `path`.
    """
    temporary = path.with_name(f".{path.name}.part")
    with explain_disk_errors(path):
        try:
            write_synced(temporary, *chunks)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(path.parent)


@contextmanager
def atomic_folder(path: Path, temporary_name: str = "") -> Iterator[Path]:
    """Return a context with a folder to fill, which appears complete at `path` when the block ends.

    If the block fails, nothing appears. Write the files inside with `write_synced`. `path` must not exist.
    Until the end the folder has the name `temporary_name`, `.<name>.part` if not given.

    Raises: RunFailed: the folder can't be written, or another process is writing it.
    """
    temporary = path.with_name(temporary_name or f".{path.name}.part")
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
    """Return a context with an empty folder that only this process fills.

    Files that a killed process has left in it are removed. On Windows folders have no locks; there only the
    locks of the cache and of runs keep processes apart.
    """
    os.makedirs(folder, exist_ok=True)
    if not _can_open_folders():
        _empty(folder)
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        locked = lock(descriptor, wait=False)
        # Another process may have finished after the folder was opened. Then the folder was renamed.
        if not locked or not folder.exists() or not os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            raise FileExistsError(errno.EEXIST, "another process is writing it")
        _empty(folder)
        yield
    finally:
        os.close(descriptor)


def _can_open_folders() -> bool:
    return hasattr(os, "O_DIRECTORY")


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else os.unlink(entry)


@contextmanager
def explain_disk_errors(path: Path) -> Iterator[None]:
    """Return a context that turns an OSError into a RunFailed with the path and the free disk space."""
    try:
        yield
    except OSError as error:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        free = shutil.disk_usage(folder).free
        raise RunFailed(f"{path}: can't write: {error.strerror} ({free / 1e6:,.0f} MB free)") from error


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(chunks: Iterable[Chunk]) -> str:
    """Return the sha256 of pieces one after another, in hexadecimal. Meanwhile other threads work."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
