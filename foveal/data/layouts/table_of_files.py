"""A table with a header beside, above or next to the files that one of its columns names.

Common Voice (`train.tsv`, `clips/`), Flickr8k (`captions.txt`, `Images/`), ESC-50 (`meta/esc50.csv`,
`audio/`), UrbanSound8K (`metadata/UrbanSound8K.csv`, `audio/fold1/`), competitions (`train.csv`, `train/`).
"""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.files.folders import FILE_NAME_COLUMN
from foveal.data.files.sidecars import without_sidecars
from foveal.data.files.split_names import group_by_split, list_names, split_of_name
from foveal.data.files.tables import column_names, read_records
from foveal.data.find_splits import MEDIA_SUFFIXES
from foveal.data.layouts.layout import Layout, LayoutSplit

SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl")
"""Suffixes of tables."""
TARGETS = {
    "text": ("text", "sentence", "caption", "transcription", "transcript", "comment"),
    "label": ("label", "class", "category", "class_name", "species", "target", "classid"),
}
"""The columns that are read as `text` and as `label`: the first that is there."""
FOLD = "fold"
"""A column with the number of the folder `fold1`."""
EXAMPLE = "submission"
"""A word in the names of tables that show the form of answers, with labels that are none."""
BEST = "validated"
"""The name of a table that is read where several name the files."""
MAX_LOOKED_AT = 20
"""Tables, folders, and rows of a table that are looked at."""


class NamedFiles(NamedTuple):
    """How a table names files: `{folder}/{value of the column}{suffix}`."""

    column: str
    folder: str
    suffix: str
    has_folds: bool

    def name(self, fields: Fields) -> str:
        """Return the name of the file of a row, relative to the folder."""
        fold = f"{FOLD}{fields[FOLD]}/" if self.has_folds else ""
        return f"{fold}{fields[self.column]}{self.suffix}"


def find(part: DataPart) -> Layout | None:
    if part.table is not None:
        return None
    tables = [*_tables(part)]
    folders = [*_media_folders(part)] if tables else []
    files_named = {name: files for name in tables if (files := _named_files(part, name, folders)) is not None}
    chosen = _choose(part, files_named)
    if not chosen:
        return None
    verb = "names" if len(chosen) == 1 else "name"
    folder = files_named[chosen["train"]].folder
    where = f" in {folder}" if folder else ""
    reason = f"{list_names([*chosen.values()])} {verb} the files{where}"
    return Layout(reason, {split: _split(part, name, files_named[name]) for split, name in chosen.items()})


def _media_folders(part: DataPart) -> Iterator[str]:
    """Yield the folders with pictures, recordings or videos at any depth; the folder itself is empty."""
    listing = part.listing
    if any(name.lower().endswith(MEDIA_SUFFIXES) for name in listing.files):
        yield ""
    for folder in listing.folders:
        if next(listing.below(folder).walk(), "").lower().endswith(MEDIA_SUFFIXES):
            yield folder


def _tables(part: DataPart) -> Iterator[str]:
    """Yield the tables in the folder, and in folders without media files."""
    listing = part.listing
    tables = [name for name in without_sidecars(listing.files) if _may_name_files(name)]
    yield from tables[:MAX_LOOKED_AT]
    for folder in listing.folders[:MAX_LOOKED_AT]:
        files = listing.below(folder).files[:MAX_LOOKED_AT]
        if not any(name.lower().endswith(MEDIA_SUFFIXES) for name in files):
            yield from (f"{folder}/{name}" for name in files if _may_name_files(name))


def _may_name_files(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and EXAMPLE not in name.lower()


def _named_files(part: DataPart, table: str, folders: list[str]) -> NamedFiles | None:
    """Return how most of the first rows of a table name files; None if they don't."""
    rows = [*islice(_records(part, table), MAX_LOOKED_AT)]
    for column, value in rows[0].items() if rows and len(rows[0]) > 1 else ():  # a column alone is a list
        is_name = isinstance(value, str) and value.lower().endswith(MEDIA_SUFFIXES)
        if not is_name and len({str(row[column]) for row in rows}) < len(rows):
            continue  # numbers of classes, which may be names of files by chance
        for files in _spellings(part, table, column, str(value), folders):
            if not files.has_folds or FOLD in rows[0]:
                exist = [(part.path / files.folder / files.name(row)).is_file() for row in rows]
                if 2 * sum(exist) > len(exist):
                    return files
    return None


def _spellings(
    part: DataPart, table: str, column: str, value: str, folders: list[str]
) -> Iterator[NamedFiles]:
    """Yield the ways in which a value of a column may name a file. A folder that is the same split as the
    table comes first."""
    split = split_of_name(Path(table).stem)
    is_name = value.lower().endswith(MEDIA_SUFFIXES)
    if is_name and "/" in value and (split is not None or len(folders) == 1):
        yield NamedFiles(column, "", "", False)
    for folder in sorted(folders, key=lambda folder: split is None or split_of_name(folder) != split):
        if is_name:
            yield from (NamedFiles(column, folder, "", has_folds) for has_folds in (False, True))
        elif folder:
            first = next(part.listing.below(folder).walk())
            yield NamedFiles(column, folder, os.path.splitext(first)[1], False)


def _choose(part: DataPart, files_named: Mapping[str, NamedFiles]) -> dict[SplitName, str]:
    """Return the table of each split; empty if there is no table.

    Raises: UserError: several tables name the files, and none of them is that of a split.
    """
    stems = {Path(name).stem: name for name in files_named if not _is_held_out(name, files_named[name])}
    if any(split_of_name(stem) == "train" for stem in stems):
        grouped = group_by_split(part, stems)
        return {split: stems[same[0]] for split, same in grouped.splits.items()}
    stems = {stem: name for stem, name in stems.items() if split_of_name(stem) is None}
    if len(stems) > 1 and BEST not in stems:
        raise UserError(
            f"{part}: {list_names([*stems.values()])} name the files in it; keep one of them, or rename "
            "one to train.csv"
        )
    return {"train": stems.get(BEST, next(iter(stems.values())))} if stems else {}


def _is_held_out(table: str, files: NamedFiles) -> bool:
    """Return whether a table that is of no split names the files of a folder that is a held-out split."""
    return split_of_name(Path(table).stem) is None and split_of_name(files.folder) in ("valid", "test")


def _split(part: DataPart, table: str, files: NamedFiles) -> LayoutSplit:
    names = column_names(part.path / table, part.encoding)
    others = [name for name in names if name not in (files.column, FILE_NAME_COLUMN)]
    renamed = {name: name for name in others}
    lower = {name.strip().lower(): name for name in reversed(others)}
    for target, candidates in TARGETS.items():
        name = next((lower[each] for each in candidates if each in lower), None)
        if name is not None:
            renamed[name] = target

    def rows() -> Iterator[list[object]]:
        for fields in _records(part, table, strict=True):
            yield [files.name(fields), *(fields[name] for name in others)]

    folder = part.path / files.folder
    return LayoutSplit([part.path / table], folder, [*renamed.values()], rows)


def _records(part: DataPart, table: str, strict: bool = False) -> Iterator[Fields]:
    """Yield the rows of a table that can be read.

    Raises: UserError: `strict`, and a row can't be read.
    """
    path = part.path / table
    try:
        for location, fields in read_records(path, column_names(path, part.encoding), encoding=part.encoding):
            if isinstance(fields, dict):
                yield fields
            elif strict:
                raise UserError(f"{path}, {location}: {fields}")
    except UserError:
        if strict:
            raise
