"""Files of packages. A wheel is a zip, an npm package is a tar, and a Debian package is a tar in an ar
archive."""

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
"""A name, whether it is a regular file, and a function that reads the file."""
AR_MAGIC, AR_HEADER_BYTES = b"!<arch>\n", 60
"""The first bytes of an ar, and the bytes of each member's header: the name is at 0, the size at 48."""


def read_archive(path: Path, files: str) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of a .whl, .tgz or .deb whose names match the pattern `files`.

    Names are without folders. For a pattern of a whole folder, such as `folder/*`, names are paths in the
    folder.

    Raises: UserError: a name points outside the archive, a file is a link, two files have the same name, the
    archive is damaged, or no name matches.
    """
    names, folder = set(), PurePosixPath(files).parent
    try:
        for name, regular, read in _members(path):
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts or "\\" in name:
                raise UserError(f"{path.name}: the name {name!r} leads out of the archive; don't use it")
            if not fnmatch(str(parts), files):
                continue
            short_name = str(parts.relative_to(folder)) if files.endswith("/*") else parts.name
            if not regular or short_name in names:
                raise UserError(f"{path.name}: {name!r} is a link or there twice; don't use it")
            names.add(short_name)
            yield short_name, read()
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise UserError(f"{path.name}: damaged: {error}; clear the package client's cache") from None
    if not names:
        raise UserError(f"{path.name}: has no {files}")


def _members(path: Path) -> Iterator[ArchiveMember]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.infolist():
                file_type = stat.S_IFMT(member.external_attr >> 16)
                if not member.is_dir():
                    yield member.filename, file_type in (0, stat.S_IFREG), partial(wheel.read, member)
        return
    packed = io.BytesIO(_deb_data(path) if path.suffix == ".deb" else path.read_bytes())
    with tarfile.open(fileobj=packed) as tar:
        for entry in tar:
            if not entry.isdir():
                yield entry.name, entry.isreg(), partial(_read_member, tar, entry)


def _read_member(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    return b"" if file is None else file.read()


def _deb_data(path: Path) -> bytes:
    """Return the member `data.tar.*` of a Debian package (deb(5))."""
    content = path.read_bytes()
    offset = len(AR_MAGIC) if content.startswith(AR_MAGIC) else len(content)
    while offset < len(content):
        header = content[offset : offset + AR_HEADER_BYTES]
        size, start = int(header[48:58]), offset + AR_HEADER_BYTES
        if header.startswith(b"data.tar"):
            return content[start : start + size]
        offset = start + size + size % 2
    raise UserError(f"{path.name}: not a Debian package; clear the package client's cache")
