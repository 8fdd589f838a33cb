"""The file or folder of a split of the data. Each fact about it is looked up only once."""

import os
import stat
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields
from foveal.data.files.listing import DiskTree, Listing, ZipTree
from foveal.data.files.npz import Shapes, array_shapes
from foveal.data.files.sidecars import TEXT_SUFFIX, pairs_with_texts, sidecar_suffixes
from foveal.data.files.split_names import list_names
from foveal.data.files.tables import TABLE_SUFFIXES, column_names, read_records
from foveal.data.files.text_files import read_text_file
from foveal.data.files.unpack import mend_member_names
from foveal.data.files.utf8 import AnyPath

METADATA_FILES = ("metadata.csv", "metadata.jsonl")
ZIP_SUFFIX, ARRAYS_SUFFIX = ".zip", ".npz"
SNIFFED_FILES = 100
"""Files of a folder that are looked at to decide its kind."""
ROWS_PER_LABEL = 3
"""Files with the same text beside them, on average, from which the texts look like labels."""
DAMAGED_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""Exceptions from reading a damaged or encrypted member of a zip."""


@dataclass(frozen=True)
class DataPart:
    """A file, a folder, a folder in a zip (`photos.zip/train`), or arrays of a file (`mnist.npz/train`).

    Facts are read when first needed, and only once. A file that can't be read counts as missing here. The
    reader of the data reports the error.
    """

    location: str
    """The path as the user typed it, or would type it."""
    status: os.stat_result | None
    """None if there is no such file or folder, or the system denies access."""
    parent: Listing | None = None
    """The listing of the folder that contains this folder."""
    missing: str = ""
    """The reason why `status` is None."""
    shards: tuple[Path, ...] = ()
    """The files whose rows together are the part, if there are several. The first is at `location`."""
    encoding: str = ""
    """The encoding of lines of tables and of sentences that are not UTF-8, if the user has named it."""

    def __str__(self) -> str:
        return self.location

    @cached_property
    def path(self) -> Path:
        return Path(self.location)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the part: its own, or its shards."""
        return self.shards or (self.path,)

    @property
    def is_file(self) -> bool:
        return self.status is not None and stat.S_ISREG(self.status.st_mode)

    @property
    def is_disk_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @cached_property
    def is_folder(self) -> bool:
        """Return whether the part is a folder, a zip, or a folder in a zip."""
        if self.is_disk_folder or self.parent is not None:
            return True
        if self.is_file:
            return self.suffix == ZIP_SUFFIX
        return any(above.suffix.lower() == ZIP_SUFFIX and above.is_file() for above in self.path.parents)

    @cached_property
    def suffix(self) -> str:
        """The suffix of the name, in lower case."""
        return self.path.suffix.lower()

    @property
    def aligned(self) -> tuple[Path, Path] | None:
        """The two text files named by a path such as `a,b`."""
        names = self.location.split(",")
        if len(names) == 1 or self.status is not None:
            return None
        pairs = [
            (Path(",".join(names[:count])), Path(",".join(names[count:]))) for count in range(1, len(names))
        ]
        return next((pair for pair in pairs if pair[0].is_file() and pair[1].is_file()), pairs[0])

    @property
    def is_table(self) -> bool:
        """Return whether the part is a file with columns."""
        return self.is_file and self.suffix in TABLE_SUFFIXES

    @cached_property
    def listing(self) -> Listing:
        """The listing of the folder. For a zip with a single folder inside, the listing of that folder.

        Raises: UserError: the part is a file and not a zip.
        """
        if self.parent is not None:
            return self.parent.below(self.path.name)
        if self.status is None or self.is_file:
            return _open_zip(self.path)
        return Listing(DiskTree(self.path))

    @cached_property
    def first_files(self) -> list[str]:
        """The names of a folder's first files, which decide its kind."""
        return [*islice((name for name in self.listing.walk() if name not in METADATA_FILES), SNIFFED_FILES)]

    @cached_property
    def filled_folders(self) -> list[str]:
        """The names of a folder's folders with files, at any depth."""
        listing = self.listing
        return [name for name in listing.folders if next(listing.below(name).walk(), "")]

    @property
    def empty_folders(self) -> str:
        """Return words for a folder's folders without files, for a message. Empty if there are none."""
        empty = [name for name in self.listing.folders if name not in {*self.filled_folders}]
        return f" ({list_names(empty)} empty)" if empty else ""

    @cached_property
    def sidecars(self) -> list[str]:
        """The suffixes of the files beside most files of a folder without a table, such as `.txt`."""
        return [] if self.table is not None or not self.is_folder else sidecar_suffixes(self.first_files)

    @cached_property
    def has_repeated_texts(self) -> bool:
        """Return whether the texts beside the first files repeat, as labels do."""
        if TEXT_SUFFIX not in self.sidecars:
            return False
        pairs = [name for _, name in pairs_with_texts(self.first_files) if name is not None]
        texts = {read_text_file(self.listing.file(name), self.encoding).text for name in pairs}
        return 0 < ROWS_PER_LABEL * len(texts) <= len(pairs)

    @cached_property
    def table(self) -> AnyPath | None:
        """The table: the part itself, or the metadata table in the folder."""
        if self.is_table:
            return self.path
        if not self.is_folder:
            return None
        return next((self.listing.file(name) for name in METADATA_FILES if name in self.listing.files), None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns; empty if there is no table, or the table can't be read."""
        return () if isinstance(self._header, UserError) else self._header

    @property
    def is_damaged(self) -> bool:
        """Return whether the table can't be read."""
        return isinstance(self._header, UserError)

    def known_columns(self) -> tuple[str, ...]:
        """Return the names of the table's columns.

        Raises: UserError: the table can't be read.
        """
        if isinstance(self._header, UserError):
            raise UserError(str(self._header))  # a new one, so that the traceback does not hold the zip open
        return self._header

    @cached_property
    def _header(self) -> tuple[str, ...] | UserError:
        try:
            return () if self.table is None else tuple(column_names(self.table, self.encoding))
        except UserError as error:
            return error
        except DAMAGED_ZIP_ERRORS as error:
            return damaged_zip_error(self.table, error)

    @cached_property
    def first_row(self) -> Fields:
        """The first readable row of the table; empty if there is no such row."""
        if self.table is None or not self.columns:
            return {}
        try:
            rows = read_records(self.table, self.columns, encoding=self.encoding)
            return next((fields for _, fields in rows if isinstance(fields, dict)), {})
        except (UserError, *DAMAGED_ZIP_ERRORS):
            return {}

    @property
    def arrays_file(self) -> Path | None:
        """The file of NumPy arrays: the part itself, or the file whose arrays the part names."""
        if self.suffix == ARRAYS_SUFFIX:
            return self.path
        return self.path.parent if self.path.parent.suffix.lower() == ARRAYS_SUFFIX else None

    @cached_property
    def arrays(self) -> Shapes:
        """The shapes of the arrays in `arrays_file` by their names; empty if the file is damaged."""
        return {} if self.arrays_file is None else array_shapes(self.arrays_file)


def open_part(location: str, parent: Listing | None = None, encoding: str = "") -> DataPart:
    """Open the part at a path. `parent` is the listing of its folder, if known."""
    try:
        return DataPart(location, os.stat(location), parent, encoding=encoding)
    except (FileNotFoundError, ValueError):
        reason = f"{location}: no such file or folder"
    except OSError as error:
        reason = f"{location}: can't read: {error.strerror}"
    return DataPart(location, None, parent, reason, encoding=encoding)


def open_shards(paths: Sequence[Path], encoding: str = "") -> DataPart:
    """Open files whose rows together are a part."""
    part = open_part(str(paths[0]), encoding=encoding)
    return replace(part, shards=tuple(paths)) if len(paths) > 1 else part


def _open_zip(path: Path) -> Listing:
    """Return the listing of a zip, or of a folder in a zip.

    Raises: UserError: the file is not a zip.
    """
    archive = next((above for above in (path, *path.parents) if above.is_file()), None)
    if archive is None:
        return Listing(DiskTree(path))  # reading it reports that there is no such folder
    try:
        tree = zipfile.Path(archive)
    except UnicodeDecodeError:
        raise UserError(f"{archive}: the name of a file in it is not UTF-8; make the zip again") from None
    except (zipfile.BadZipFile, OSError) as error:
        is_zip = archive.suffix.lower() == ".zip"
        advice = "get the file again" if is_zip else "give a folder or a zip, or another --task or --model"
        raise UserError(f"{archive}: not a folder, nor readable as a zip: {error}; {advice}") from None
    mend_member_names(archive, tree.root)
    listing = Listing(ZipTree(tree))
    if path != archive:
        return listing.below(path.relative_to(archive).as_posix())
    while len(listing.entries) == 1 and listing.entries[0].is_folder:
        listing = listing.below(listing.entries[0].name)
    return listing


def damaged_zip_error(file: object, error: Exception) -> UserError:
    """Return the error for a member of a zip that can't be read."""
    return UserError(f"{file}: can't read: {error}; make the zip again")
