"""Packed files of tables, texts or recordings, unpacked once into the user's cache."""

import gzip
import hashlib
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from foveal.core.errors import UserError
from foveal.data.files.unpacked_size import check_unpacked_size
from foveal.data.files.utf8 import open_file
from foveal.store.cache import file_lock, unpacked_folder
from foveal.store.durable import atomic_folder

GZIP_SUFFIX = ".gz"
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
