"""DATA, opened once: its kind, splits, columns and first row. All other code uses the opened value."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.audio.audio_source import are_recordings
from foveal.data.core.fields import Fields
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.core.rows import Row
from foveal.data.datasets.dataset_cache import resolve
from foveal.data.files.data_part import METADATA_FILES, SPLIT_FOLDERS, DataPart, open_part
from foveal.data.files.tables import TABLE_SUFFIXES
from foveal.data.images.image_arrays import array_splits
from foveal.data.images.image_files import are_images
from foveal.data.series.series_files import SERIES_READERS, TARGET_FIELDS, are_series, read_series
from foveal.data.text.conll import CONLL_SUFFIXES
from foveal.data.video.clip_files import are_clips

DataKind = Literal[
    "aligned", "clips", "images", "audio", "files", "conll", "series", "table", "text", "missing"
]
"""What DATA looks like.

`aligned` is two text files. `files` is a folder of any files with a metadata table. `text` is any other file
or folder. `missing` is a path without a file, or a data set of the catalog, whose files are made later.
"""
SNIFFERS: dict[DataKind, Callable[[DataPart], bool]] = {
    "clips": are_clips,
    "images": are_images,
    "audio": are_recordings,
}
"""Tests for kinds of files by content, in the order in which they are tried."""
SPLIT_FILE_SUFFIXES = {*TABLE_SUFFIXES, *SERIES_READERS}
"""Suffixes of files that can be a split."""


@dataclass(frozen=True)
class OpenedData:
    """DATA, opened. Each fact is looked up when first needed, and only once."""

    name: str
    """The user's argument: a path, two paths `a,b`, or a name of the catalog."""
    resolve: Callable[[str], str]
    """A function from `name` to a path. The function creates the files of a data set of the catalog."""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def named(self) -> DataPart:
        """The file or folder at `name`, if `name` is a path."""
        return open_part(self.name)

    @cached_property
    def whole(self) -> DataPart:
        """All of DATA, with or without splits.

        Raises: UserError: there is no such path, and no data set of that name.
        """
        return self.named if self.named.status else open_part(self.resolve(self.name))

    @cached_property
    def splits(self) -> dict[SplitName, DataPart]:
        """The file or folder of each split. `train` is always present.

        Splits are folders such as `train` and `test`, also in a zip; arrays of a file; IDX files; or files
        such as `train.tsv`. DATA without splits is `train`.

        Raises: UserError: two folders are the same split, or the files of the splits have several formats.
        """
        return _split_folders(self.whole) or _split_arrays(self.whole) or _split_files(self.whole)

    def split(self, name: SplitName) -> DataPart:
        """Return the split `name`, or the last split if there is no such split."""
        return self.splits.get(name, list(self.splits.values())[-1])

    @property
    def train(self) -> DataPart:
        return self.splits["train"]

    @cached_property
    def kind(self) -> DataKind:
        """The kind of DATA, decided by the training split."""
        if self.named.status is None and not self.named.is_folder:
            return "missing" if self.named.aligned is None else "aligned"
        for kind, is_kind in SNIFFERS.items():
            with suppress(UserError):  # the reader of the data reports the error
                if is_kind(self.train):
                    return kind
        if self.whole.is_disk_folder and self.whole.table is not None:
            return "files"
        if self.train.suffix in CONLL_SUFFIXES:
            return "conll"
        if are_series(self.train):
            return "series"
        return "table" if self.train.is_table else "text"

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
            return self.train.arrays
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
                    for row in read_series(self.train.path, tuple(TARGET_FIELDS))
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


def open_data(data: str | OpenedData, log: Log) -> OpenedData:
    """Open DATA: a path, two paths `a,b`, or a name of the catalog. Return opened data unchanged."""
    return data if isinstance(data, OpenedData) else OpenedData(data, lambda name: resolve(name, log))


def open_path(path: str) -> OpenedData:
    """Open a path, which need not exist. Names of the catalog are not looked up."""
    return OpenedData(path, str)


def _split_folders(whole: DataPart) -> dict[SplitName, DataPart]:
    """Return the folders of the splits of a folder or zip; none if there is a table or any other folder.

    Raises: UserError: several folders are the same split.
    """
    if not whole.is_folder:
        return {}
    listing = whole.listing
    names = listing.folders
    has_table = any(name in METADATA_FILES for name in listing.files)
    if has_table or "train" not in names or not SPLIT_FOLDERS.keys() >= {*names}:
        return {}
    parts = {SPLIT_FOLDERS[name]: open_part(f"{listing.name}/{name}", listing) for name in names}
    if len(parts) < len(names):
        raise UserError(
            f"{whole}: {', '.join(names)} are several folders for the same split; keep one folder per split"
        )
    return {split: parts[split] for split in SPLITS if split in parts}


def _split_arrays(whole: DataPart) -> dict[SplitName, DataPart]:
    return {split: open_part(location) for split, location in array_splits(whole).items()}


def _split_files(whole: DataPart) -> dict[SplitName, DataPart]:
    """Return files such as `train.tsv` by split. Without such files, return all of DATA as `train`.

    Raises: UserError: the files have several formats.
    """
    names = whole.listing.files if whole.is_disk_folder else []
    paths = [whole.path / name for name in names]
    tables = [path for path in paths if path.stem in SPLITS and path.suffix.lower() in SPLIT_FILE_SUFFIXES]
    if not any(path.stem == "train" for path in tables):
        return {"train": whole}
    if len({path.suffix for path in tables}) > 1:
        listed = ", ".join(path.name for path in tables)
        raise UserError(f"{whole}: {listed} have several formats; keep the files of a single format")
    return {split: open_part(str(path)) for split in SPLITS for path in tables if path.stem == split}
