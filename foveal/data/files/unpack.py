"""Packed files of tables, texts or recordings, unpacked once into the user's cache."""

import gzip
import hashlib
import os
import shutil
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedIOBase
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from foveal.core.errors import UserError
from foveal.data.files.unpacked_size import check_unpacked_size
from foveal.data.files.utf8 import open_file
from foveal.store.cache import file_lock, unpacked_folder
from foveal.store.durable import atomic_folder

GZIP_SUFFIX, TAR_SUFFIX = ".gz", ".tar"
COPY_BYTES = 1 << 20
"""Bytes that are unpacked at a time."""


def unpack_gzip(path: Path) -> Path:
    """Return the file in a `.gz`, unpacked into the cache.

    Raises: UserError: the file is damaged, or unpacks to implausibly many bytes.
    """
    with _unpacked_folder(path) as folder:
        if not folder.is_dir():
            with atomic_folder(folder) as new, _explain_damage(path), gzip.open(path) as packed:
                _copy(path, packed, new / path.stem)
    return folder / path.stem


def unpack_zip(path: Path) -> Path:
    """Return the folder of the files in a zip, unpacked into the cache. Return a file that is alone in a zip.

    Raises: UserError: the zip is damaged, or unpacks to implausibly many bytes.
    """
    with _unpacked_folder(path) as folder:
        if not folder.is_dir():
            with atomic_folder(folder) as new, _explain_damage(path), zipfile.ZipFile(path) as archive:
                mend_member_names(path, archive)
                members = [member for member in archive.infolist() if not member.is_dir()]
                check_unpacked_size(path, sum(member.file_size for member in members))
                for member in members:
                    file = new / member.filename
                    file.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(member) as packed:
                        _copy(path, packed, file)
    inside = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "__MACOSX"))]
    while len(inside) == 1 and inside[0].is_dir():
        folder = inside[0]
        inside = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    return inside[0] if len(inside) == 1 else folder


def mend_member_names(path: Path, archive: zipfile.ZipFile) -> None:
    """Write slashes in the names of a zip's members, where zips from Windows may have backslashes.

    Raises: UserError: a name is not a relative path inside the zip, or two files have the same name.
    """
    for member in archive.filelist:
        if "\\" in member.filename:
            member.filename = member.filename.replace("\\", "/")
            archive.NameToInfo[member.filename] = member
        name = member.filename
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise UserError(f"{path}: the name {name!r} leads out of the zip; make the zip again")
    names = Counter(member.filename for member in archive.filelist if not member.is_dir())
    name, count = max(names.items(), key=lambda item: item[1], default=("", 1))
    if count > 1:
        raise UserError(
            f"{path}: {count} files in it are named {name!r}; rename all but one, and make the zip again"
        )


def first_members(path: Path, count: int) -> list[str]:
    """Return the names of the first files in a tar, at most `count`. Empty if it can't be read."""
    try:
        with tarfile.open(path, "r:") as archive:
            return [member.name for member in islice(archive, count) if member.isreg()]
    except (tarfile.TarError, OSError):
        return []


def unpack_tars(folder: Path, names: Sequence[str]) -> Path:
    """Return a folder with a folder of the files in each tar `names` of `folder`, unpacked into the cache.

    Each tar is unpacked on its own, so an unpacking that was killed goes on at the tar where it was.

    Raises: UserError: a tar is damaged or cut off, a name in it leads out of the tar, is that of two files,
        or is that of no regular file.
    """
    unpacked = {name: _unpack_tar(folder / name) for name in names}
    digest = hashlib.sha256(str(unpacked).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    whole = unpacked_folder(digest) / folder.name
    with file_lock(whole):
        if not whole.is_dir():
            with atomic_folder(whole) as new:
                for name, members in unpacked.items():
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    (new / name).symlink_to(members, target_is_directory=True)
    return whole


def _unpack_tar(path: Path) -> Path:
    with _unpacked_folder(path) as folder:
        if not folder.is_dir():
            with atomic_folder(folder) as new, open_file(path) as file:
                _unpack_members(path, file, new)
    return folder


def _unpack_members(path: Path, file: BufferedIOBase, folder: Path) -> None:
    """Write the files of an opened tar, which is read as a stream.

    Raises: UserError: `unpack_tars`.
    """
    last = "its start"
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            while (member := archive.next()) is not None:
                vars(archive)["members"] = []  # which grow with the tar
                last = member.name
                content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
                if content is not None:
                    _copy(path, content, _new_file(path, folder, member.name))
                elif not member.isdir():
                    raise UserError(f"{path}, {member.name}: a link or device; make the tar of regular files")
            file.seek(archive.offset)
    except tarfile.TarError:
        raise UserError(f"{path}: cut off or damaged after {last}; get the file again") from None
    if file.read(tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:  # the block that ends every tar
        raise UserError(f"{path}: cut off or damaged after {last}; get the file again")


def _new_file(path: Path, folder: Path, name: str) -> Path:
    """Return the path below `folder` of the file `name` in the tar `path`.

    Raises: UserError: the name leads out of the tar, or is that of two files.
    """
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
        raise UserError(f"{path}: the name {name!r} leads out of the tar; make the tar again")
    file = folder / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(file):
            return file
    except (FileExistsError, NotADirectoryError):
        pass
    raise UserError(f"{path}: two files in it are named {name!r}; rename one, and make the tar again")


@contextmanager
def _unpacked_folder(path: Path) -> Iterator[Path]:
    """Return a context with the folder of a packed file in the cache, which only one process can enter."""
    status = path.stat()
    facts = str((str(path.absolute()), status.st_size, status.st_mtime_ns))
    digest = hashlib.sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    folder = unpacked_folder(digest) / path.name
    open_file(path).close()
    with file_lock(folder):
        yield folder


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path}: can't be unpacked: {error}; get the file again") from None


def _copy(path: Path, packed: Any, file: Path) -> None:
    """Write the content of an opened member of `path` to `file`."""
    size = 0
    with file.open("wb") as out:
        while block := packed.read(COPY_BYTES):
            size += len(block)
            check_unpacked_size(path, size, " or more")
            out.write(block)
    shutil.copystat(path, file)
