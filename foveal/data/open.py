"""DATA, opened once: its kind, splits, columns and first row. All other code uses the opened value."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.audio.audio_source import are_recordings
from foveal.data.core.fields import Fields
from foveal.data.core.hash_split import SplitName
from foveal.data.core.rows import Row
from foveal.data.datasets.dataset_cache import resolve
from foveal.data.files.data_part import ZIP_SUFFIX, DataPart, open_part, open_shards
from foveal.data.files.mending import backslash_hint, series_hint
from foveal.data.files.remote import fetch, is_remote
from foveal.data.files.seen_files import describe_files
from foveal.data.files.split_names import list_names
from foveal.data.files.unpack import GZIP_SUFFIX, unpack_gzip, unpack_zip
from foveal.data.files.utf8 import AnyPath
from foveal.data.find_splits import ROW_SUFFIXES, FoundSplits, find_splits, mixed_files_hint
from foveal.data.images.image_arrays import has_many_images
from foveal.data.images.image_files import are_images, is_image_name
from foveal.data.layouts.layout import Layout, find_layout, write_layout
from foveal.data.series.series_files import TARGET_FIELDS, are_series, describe_series, read_series
from foveal.data.text.conll import CONLL_SUFFIXES
from foveal.data.text.running_text import holds_series, look_at_text
from foveal.data.text.texts_by_class import ClassLook, look_at_classes
from foveal.data.video.clip_files import are_clips
from foveal.data.video.video_decoding import is_video

DataKind = Literal[
    "aligned",
    "clips",
    "images",
    "audio",
    "files",
    "conll",
    "series",
    "table",
    "texts",
    "text",
    "unknown",
    "missing",
]
"""What DATA looks like.

`aligned` is two text files. `files` is a folder of any files with a metadata table. `texts` is a folder of
texts for each class. `text` is running text. `unknown` is any other file or folder. `missing` is a path
without a file, or a data set of the catalog, whose files are made later.
"""
MAX_PACKED_LAYERS = 3
"""Packed files inside each other that are unpacked."""
SNIFFERS: dict[DataKind, tuple[Callable[[DataPart], bool], str]] = {
    "clips": (are_clips, "clips"),
    "images": (are_images, "pictures"),
    "audio": (are_recordings, "recordings"),
}
"""Tests for kinds of files by content, in the order in which they are tried, and the words for the files."""


class Evidence(NamedTuple):
    """What DATA looks like, and what was seen that decided so."""

    kind: DataKind
    reason: str
    """A clause, such as "there are pictures in the folders cat, dog". For the kind `unknown`, the start of an
    error."""


@dataclass(frozen=True)
class OpenedData:
    """DATA, opened. Each fact is looked up when first needed, and only once."""

    name: str
    """The user's argument: a path, two paths `a,b`, a remote address, or a name of the catalog."""
    resolve: Callable[[str], str]
    """A function from `name` to a path. The function creates the files of a data set of the catalog."""
    encoding: str = ""
    """The encoding of lines of tables that are not UTF-8, if the user has named it."""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def named(self) -> DataPart:
        """The file or folder at `name`, if `name` is a path or an address, whose files are fetched.

        Raises: UserError: the files can't be fetched.
        """
        path = str(fetch(self.name)) if is_remote(self.name) else self.name
        return open_part(path, encoding=self.encoding)

    @cached_property
    def unpacked(self) -> DataPart:
        """The file or folder as it stands. Packed files are unpacked, but for zips of pictures.

        Raises: UserError: there is no such path, and no data set of that name; or a packed file is damaged,
            or has only zips in it.
        """
        part = self.named
        if part.status is None:
            part = open_part(self.resolve(self.name), encoding=self.encoding)
        for _ in range(MAX_PACKED_LAYERS):
            if not part.is_file or part.suffix not in (GZIP_SUFFIX, ZIP_SUFFIX):
                break
            part = self._unpacked(part)
        if part.is_disk_folder and part.first_files and all(map(_is_zip, part.first_files)):
            names = list_names(part.first_files)
            raise UserError(f"{self}: only zips in it ({names}); give one of them")
        return part

    def _unpacked(self, packed: DataPart) -> DataPart:
        """Return what is in a packed file, or the file itself if it is read in place.

        Raises: UserError: the file is damaged, or a zip without files.
        """
        if packed.suffix == GZIP_SUFFIX:
            in_place = has_many_images(packed)
            return packed if in_place else open_part(str(unpack_gzip(packed.path)), encoding=self.encoding)
        if not any(packed.listing.walk()):
            raise UserError(f"{packed}: a zip without files; pack the files again")
        in_place = _has_pictures(packed)
        return packed if in_place else open_part(str(unpack_zip(packed.path)), encoding=self.encoding)

    @cached_property
    def layout(self) -> Layout | None:
        """The layout of a folder whose files are named by a table other than `metadata.csv`.

        Raises: UserError: DATA can't be unpacked, or `find_layout` refuses its tables.
        """
        return find_layout(self.unpacked)

    @cached_property
    def whole(self) -> DataPart:
        """All of DATA, with or without splits, in a layout that is read.

        Raises: UserError: DATA can't be unpacked, or `find_layout` or `write_layout` refuses its tables.
        """
        if self.layout is None:
            return self.unpacked
        folder = write_layout(self.layout, self.unpacked)
        return open_part(str(folder), encoding=self.encoding)

    @cached_property
    def found_splits(self) -> FoundSplits:
        """The splits of DATA, and the files that are in no split.

        Raises: UserError: `find_splits` refuses the names of folders or files.
        """
        return find_splits(self.whole)

    @property
    def splits(self) -> dict[SplitName, DataPart]:
        """The file or folder of each split. `train` is always present: DATA without splits is `train`.

        Raises: UserError: `find_splits` refuses the names of folders or files.
        """
        return self.found_splits.parts

    @cached_property
    def all_rows(self) -> DataPart:
        """All of DATA, with or without splits. Several files of rows are shards of one part."""
        if self.layout is not None:
            folder = self.layout.folder
            return self.unpacked if folder is None else open_part(str(folder), encoding=self.encoding)
        with suppress(UserError):  # names of splits, which don't matter here
            parts = self.splits.values()
            if self.whole.is_disk_folder and all(part.suffix in ROW_SUFFIXES for part in parts):
                return open_shards([file for part in parts for file in part.files], self.encoding)
        return self.whole

    def sources(self, find_table: Callable[[DataPart], AnyPath | None]) -> DataPart:
        """Return all of DATA for a source whose rows are those of the table that `find_table` returns, or the
        files if that is None. The only table of a layout has all rows."""
        is_one = self.layout is not None and len(self.layout.splits) == 1
        return self.whole if is_one and find_table(self.whole) is not None else self.all_rows

    def split(self, name: SplitName) -> DataPart:
        """Return the split `name`, or the last split if there is no such split."""
        return self.splits.get(name, list(self.splits.values())[-1])

    @property
    def train(self) -> DataPart:
        return self.splits["train"]

    @property
    def kind(self) -> DataKind:
        """The kind of DATA, decided by the training split."""
        return self.evidence.kind

    @cached_property
    def evidence(self) -> Evidence:
        """The kind of DATA, and what decided it."""
        if self.named.status is None and not self.named.is_folder:
            if self.named.aligned is None:
                return Evidence("missing", f"{self.name} is a data set of the catalog")
            return Evidence(
                "aligned", "it is two files, of which line i of the first belongs to line i of the second"
            )
        train = self.train
        if hint := backslash_hint(train):
            return Evidence("unknown", hint)
        for kind, (is_kind, files) in SNIFFERS.items():
            with suppress(UserError):  # the reader of the data reports the error
                if is_kind(train):
                    reason = self.layout.reason if self.layout else describe_files(train, files)
                    return Evidence(kind, reason)
        if train.is_disk_folder and train.table is not None:
            return Evidence("files", f"there are files with {train.table.name}")
        if train.suffix in CONLL_SUFFIXES:
            return Evidence("conll", f"{train.path.name} is a file of tagged words")
        if are_series(train):
            return Evidence("series", describe_series(train))
        if holds_series(train):
            return Evidence("unknown", series_hint([*self.splits.values()]))
        if train.is_table:
            return Evidence(
                "table", f"{train.path.name} is a table with the columns {list_names([*train.columns])}"
            )
        if self.classes_of_texts is not None:
            return Evidence("texts", self.classes_of_texts.reason)
        if mixed := mixed_files_hint(train):
            return Evidence("unknown", mixed)
        look = look_at_text(train)
        return Evidence("unknown", look.doubt) if look.doubt else Evidence("text", look.reason)

    @cached_property
    def classes_of_texts(self) -> ClassLook | None:
        """Return what was seen of folders of texts by class; None if the folders are no classes."""
        return look_at_classes(self.train)

    @property
    def has_table(self) -> bool:
        """Return whether DATA is a table, or has a metadata table for its files."""
        return self.train.table is not None

    @property
    def is_damaged(self) -> bool:
        """Return whether the table can't be read. The reader of the data reports the error."""
        return self.train.is_damaged

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns, arrays or fields; empty if they can't be read."""
        if self.kind == "series":
            return frozenset(self.first_row)
        if self.kind == "clips" and self.train.is_file and self.train.arrays:
            return frozenset(self.train.arrays)
        return frozenset(self.train.columns)

    @cached_property
    def first_row(self) -> Fields:
        """The first readable row of the table, or the first readable series. Empty if there is none."""
        if self.kind != "series":
            return self.train.first_row
        with suppress(UserError):  # the reader of the data reports the error
            return next(
                (
                    row.fields
                    for row in read_series(self.train.path, tuple(TARGET_FIELDS), self.encoding)
                    if isinstance(row, Row)
                ),
                {},
            )
        return {}


class DataPaths(NamedTuple):
    """The data that the user named: paths, or names of the catalog."""

    data: str | OpenedData
    """A path, a name, or data that are opened already."""
    valid: str | None = None
    test: str | None = None


def open_data(data: str | OpenedData, log: Log, encoding: str = "") -> OpenedData:
    """Open DATA: a path, two paths `a,b`, or a name of the catalog. Return opened data unchanged, but for the
    encoding."""
    if isinstance(data, OpenedData):
        return data if data.encoding == encoding else replace(data, encoding=encoding)
    return OpenedData(data, lambda name: resolve(name, log), encoding)


def open_path(path: str | OpenedData, encoding: str = "") -> OpenedData:
    """Open a path, which need not exist and is no name of the catalog. Return opened data unchanged."""
    return path if isinstance(path, OpenedData) else OpenedData(path, str, encoding)


def _is_zip(name: str) -> bool:
    return name.lower().endswith(ZIP_SUFFIX)


def _has_pictures(zipped: DataPart) -> bool:
    """Return whether a zip has pictures or videos, or nothing else, and is read in place."""
    names = zipped.first_files
    return not names or any(is_image_name(name) or is_video(name) for name in names)
