"""DATA is opened once: what it is, its splits, its columns, its first row. Everyone else asks the value."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

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

`aligned` are two text files, `files` a folder of any files with a metadata table, and `text` any other file
or folder. `missing` is a path without a file, or a data set of the catalogue, whose files are made later.
"""
SNIFFERS: dict[DataKind, Callable[[DataPart], bool]] = {
    "clips": are_clips,
    "images": are_images,
    "audio": are_recordings,
}
"""How one sees that a folder or a file holds them, in the order in which they are asked."""
SPLIT_FILE_SUFFIXES = {*TABLE_SUFFIXES, *SERIES_READERS}
"""Suffixes of the files that may be a split."""


@dataclass(frozen=True)
class OpenedData:
    """DATA after a look at it. What is asked for is looked up once."""

    name: str
    """What the user typed: a path, two paths `a,b`, or a name of the catalogue."""
    resolve: Callable[[str], str]
    """A function from `name` to the path, which makes the files of a data set of the catalogue."""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def named(self) -> DataPart:
        """What is at `name`, if that is a path."""
        return open_part(self.name)

    @cached_property
    def whole(self) -> DataPart:
        """All of DATA, whether it has splits or not.

        Raises: UserError: there is no such path, and no data set of that name.
        """
        return self.named if self.named.status else open_part(self.resolve(self.name))

    @cached_property
    def splits(self) -> dict[SplitName, DataPart]:
        """What each split is read from, `train` among them.

        Splits are folders such as `train` and `test`, also in a zip; arrays of a file; IDX files; or files
        such as `train.tsv`. DATA without splits is `train`.

        Raises: UserError: two things are the same split, or the files of the splits differ in their form.
        """
        return _split_folders(self.whole) or _split_arrays(self.whole) or _split_files(self.whole)

    def split(self, name: SplitName) -> DataPart:
        """Return that split; without splits all of DATA, and without that one the last there is."""
        return self.splits.get(name, list(self.splits.values())[-1])

    @property
    def train(self) -> DataPart:
        return self.splits["train"]

    @cached_property
    def kind(self) -> DataKind:
        """What DATA looks like, by what there is to train on."""
        if self.named.status is None and not self.named.is_folder:
            return "missing" if self.named.aligned is None else "aligned"
        for kind, is_kind in SNIFFERS.items():
            with suppress(UserError):  # the reader says what is wrong
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
        """Whether there is a table, or one that says what belongs to each file."""
        return self.train.table is not None

    @property
    def is_damaged(self) -> bool:
        """Whether the table can't be read; the reader of the data says why."""
        return self.train.is_damaged

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns, arrays or fields; none if they can't be read."""
        if self.kind == "series":
            return frozenset(self.first_row)
        if self.kind == "clips" and self.train.is_file and self.train.arrays:
            return self.train.arrays
        return frozenset(self.train.columns)

    @cached_property
    def first_row(self) -> Fields:
        """The first row of the table, or the first series; empty if there is none that can be read."""
        if self.kind != "series":
            return self.train.first_row
        with suppress(UserError):  # the reader says what is wrong
            return next(
                (
                    row.fields
                    for row in read_series(self.train.path, tuple(TARGET_FIELDS))
                    if isinstance(row, Row)
                ),
                {},
            )
        return {}


def open_data(data: str | OpenedData, log: Log) -> OpenedData:
    """Open DATA: a path, two paths `a,b`, or a name of the catalogue. Opened data stay as they are."""
    return data if isinstance(data, OpenedData) else OpenedData(data, lambda name: resolve(name, log))


def open_path(path: str) -> OpenedData:
    """Open a path, which need not be there. Names of the catalogue mean nothing."""
    return OpenedData(path, str)


def _split_folders(whole: DataPart) -> dict[SplitName, DataPart]:
    """Return the folders inside by split, of a folder or a zip that has no others, and no table."""
    if not whole.is_folder:
        return {}
    listing = whole.listing
    names = listing.folders
    has_table = any(name in METADATA_FILES for name in listing.files)
    if has_table or "train" not in names or not SPLIT_FOLDERS.keys() >= {*names}:
        return {}
    found = {SPLIT_FOLDERS[name]: open_part(f"{listing.name}/{name}", listing) for name in names}
    if len(found) < len(names):
        raise UserError(f"{whole}: {', '.join(names)} are several folders of the same part; keep one of each")
    return {split: found[split] for split in SPLITS if split in found}


def _split_arrays(whole: DataPart) -> dict[SplitName, DataPart]:
    return {split: open_part(place) for split, place in array_splits(whole).items()}


def _split_files(whole: DataPart) -> dict[SplitName, DataPart]:
    """Return the files such as `train.tsv` by split; without them DATA, to train on."""
    inside = whole.listing.files if whole.is_disk_folder else []
    paths = [whole.path / name for name in inside]
    tables = [path for path in paths if path.stem in SPLITS and path.suffix.lower() in SPLIT_FILE_SUFFIXES]
    if not any(path.stem == "train" for path in tables):
        return {"train": whole}
    if len({path.suffix for path in tables}) > 1:
        names = ", ".join(path.name for path in tables)
        raise UserError(f"{whole}: {names} are of several forms; keep those of one")
    return {split: open_part(str(path)) for split in SPLITS for path in tables if path.stem == split}
