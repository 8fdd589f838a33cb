"""What one part of the data is read from: looked at once, then asked."""

import os
import stat
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields
from foveal.data.files.listing import DiskTree, Listing, ZipTree
from foveal.data.files.tables import TABLE_SUFFIXES, column_names, read_records
from foveal.data.files.utf8 import AnyPath

METADATA_FILES = ("metadata.csv", "metadata.jsonl")
ZIP_SUFFIX, ARRAYS_SUFFIX = ".zip", ".npz"
DAMAGED_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""What reading a member of a zip raises that is damaged, or encrypted."""

SPLIT_FOLDERS = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}
"""By the name of a folder which part of a data set is in it."""


@dataclass(frozen=True)
class DataPart:
    """A file, a folder, one in a zip (`photos.zip/train`), or some arrays of a file (`mnist.npz/train`).

    Nothing is read before it is asked for, and nothing twice. What can't be read counts as absent here: the
    reader of the data says what is wrong.
    """

    location: str
    """The path as the user has typed it, or would."""
    status: os.stat_result | None
    """None where there is no such file or folder, or the system refuses."""
    parent: Listing | None = None
    """The listing of the folder that this part is a folder of."""
    missing: str = ""
    """Why there is no `status`."""

    def __str__(self) -> str:
        return self.location

    @cached_property
    def path(self) -> Path:
        return Path(self.location)

    @property
    def is_file(self) -> bool:
        return self.status is not None and stat.S_ISREG(self.status.st_mode)

    @property
    def is_disk_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder, or a zip, which is a folder too, or a folder in a zip."""
        if self.is_disk_folder or self.parent is not None:
            return True
        if self.is_file:
            return self.suffix == ZIP_SUFFIX
        return any(above.suffix.lower() == ZIP_SUFFIX and above.is_file() for above in self.path.parents)

    @cached_property
    def suffix(self) -> str:
        """The ending of its name, in small letters."""
        return self.path.suffix.lower()

    @property
    def aligned(self) -> tuple[Path, Path] | None:
        """The two text files that a path such as `a,b` names."""
        first, comma, second = self.location.partition(",")
        return (Path(first), Path(second)) if comma and self.status is None else None

    @property
    def is_table(self) -> bool:
        """Whether it is a file with columns."""
        return self.is_file and self.suffix in TABLE_SUFFIXES

    @cached_property
    def listing(self) -> Listing:
        """What is in the folder; of a zip that has nothing but a folder, what is in that folder.

        Raises: UserError: it is a file and no zip.
        """
        if self.parent is not None:
            return self.parent.below(self.path.name)
        if self.status is None or self.is_file:
            return _open_zip(self.path)
        return Listing(DiskTree(self.path))

    @cached_property
    def table(self) -> AnyPath | None:
        """The table: itself, or the one of its folder that says what belongs to each file."""
        if self.is_table:
            return self.path
        if not self.is_folder:
            return None
        return next((self.listing.file(name) for name in METADATA_FILES if name in self.listing.files), None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns. None without a table, or with one that can't be read."""
        return () if isinstance(self._header, UserError) else self._header

    @property
    def is_damaged(self) -> bool:
        """Whether the table can't be read."""
        return isinstance(self._header, UserError)

    def known_columns(self) -> tuple[str, ...]:
        """Return the names of the table's columns.

        Raises: UserError: the table can't be read.
        """
        if isinstance(self._header, UserError):
            raise self._header
        return self._header

    @cached_property
    def _header(self) -> tuple[str, ...] | UserError:
        try:
            return () if self.table is None else tuple(column_names(self.table))
        except UserError as error:
            return error
        except DAMAGED_ZIP_ERRORS as error:
            return damaged_zip_error(self.table, error)

    @cached_property
    def first_row(self) -> Fields:
        """The first row of the table that can be read; empty if there is none."""
        if self.table is None or not self.columns:
            return {}
        try:
            rows = read_records(self.table, self.columns)
            return next((fields for _, fields in rows if isinstance(fields, dict)), {})
        except (UserError, *DAMAGED_ZIP_ERRORS):
            return {}

    @property
    def arrays_file(self) -> Path | None:
        """The file of NumPy arrays: itself, or the one that it names some arrays of."""
        if self.suffix == ARRAYS_SUFFIX:
            return self.path
        return self.path.parent if self.path.parent.suffix.lower() == ARRAYS_SUFFIX else None

    @cached_property
    def arrays(self) -> frozenset[str]:
        """The names of the arrays in `arrays_file`; none if that is damaged."""
        if self.arrays_file is None:
            return frozenset()
        try:
            with zipfile.ZipFile(self.arrays_file) as arrays:
                return frozenset(name.removesuffix(".npy") for name in arrays.namelist())
        except (zipfile.BadZipFile, OSError):
            return frozenset()


def open_part(location: str, parent: Listing | None = None) -> DataPart:
    """Look at a path. `parent` is the listing of its folder, where that is known."""
    try:
        return DataPart(location, os.stat(location), parent)
    except (FileNotFoundError, ValueError):
        return DataPart(location, None, parent, f"{location}: no such file or folder")
    except OSError as error:
        return DataPart(location, None, parent, f"{location}: can't read: {error.strerror}")


def _open_zip(path: Path) -> Listing:
    """Return what is in a zip, or in a folder of one.

    Raises: UserError: the file is no zip.
    """
    archive = next((above for above in (path, *path.parents) if above.is_file()), None)
    if archive is None:
        return Listing(DiskTree(path))  # which says that there is no such folder
    try:
        listing = Listing(ZipTree(zipfile.Path(archive)))
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"{archive}: not a folder, nor readable as a zip: {error}; get it anew") from None
    if path != archive:
        return listing.below(path.relative_to(archive).as_posix())
    while len(listing.entries) == 1 and listing.entries[0].is_folder:
        listing = listing.below(listing.entries[0].name)
    return listing


def damaged_zip_error(file: object, error: Exception) -> UserError:
    """Return the error for a member of a zip that can't be read."""
    return UserError(f"{file}: can't read: {error}; make the zip anew")
