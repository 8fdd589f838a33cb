"""A table with a header beside, above or next to the files that one of its columns names.

Common Voice (`train.tsv`, `clips/`), Flickr8k (`captions.txt`, `Images/`), ESC-50 (`meta/esc50.csv`,
`audio/`), UrbanSound8K (`metadata/UrbanSound8K.csv`, `audio/fold1/`), competitions (`train.csv`, `train/`).
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.files.folders import FILE_NAME_COLUMN
from foveal.data.files.sidecars import TEXT_SUFFIX, without_sidecars
from foveal.data.files.split_names import are_shards, is_unlabeled_name, list_names, split_of_name
from foveal.data.files.tables import column_names, read_records
from foveal.data.find_splits import MEDIA_SUFFIXES
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit, has_file

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
    others: tuple[str, ...] = ()
    """The other columns of the table."""

    def name(self, fields: Fields) -> str:
        """Return the name of the file of a row, relative to the folder."""
        fold = f"{FOLD}{fields[FOLD]}/" if self.has_folds else ""
        return f"{fold}{fields[self.column]}{self.suffix}"


def find(part: DataPart) -> Layout | None:
    if part.table is not None:
        return None
    tables = [*_tables(part)]
    folders = [*_media_folders(part)] if tables else []
    is_labeled = bool(tables) and _is_labeled(part, folders)
    files_named = {
        name: files
        for name in tables
        if (files := _named_files(part, name, folders)) is not None
        and (_targets(files.others) or not is_labeled)
    }
    chosen = _choose(part, files_named)
    if not chosen:
        return None
    names = [name for same in chosen.values() for name in same]
    verb = "names" if len(names) == 1 else "name"
    folder = files_named[chosen["train"][0]].folder
    where = f" in {folder}" if folder else ""
    splits = {
        split: _split(part, {name: files_named[name] for name in same}) for split, same in chosen.items()
    }
    return Layout(f"{list_names(names)} {verb} the files{where}", splits)


def _is_labeled(part: DataPart, folders: Sequence[str]) -> bool:
    """Return whether media files have texts beside them or are in folders of classes. Then a table without
    texts and labels, such as one of the sizes of pictures, is no layout."""
    if TEXT_SUFFIX in part.sidecars:
        return True
    classes = [folder for folder in folders if folder and split_of_name(folder) is None]
    return len(classes) > 1 or any(part.listing.below(folder).folders for folder in folders if folder)


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
    with suppress(UserError):  # a file that is no table
        records = islice(_records(part, table), MAX_LOOKED_AT)
        rows = [fields for _, fields in records if isinstance(fields, dict)]
        for column, value in rows[0].items() if rows and len(rows[0]) > 1 else ():  # one column: a list
            is_name = isinstance(value, str) and value.lower().endswith(MEDIA_SUFFIXES)
            if not is_name and len({str(row[column]) for row in rows}) < len(rows):
                continue  # numbers of classes, which may be names of files by chance
            for files in _spellings(part, table, column, str(value), folders):
                if not files.has_folds or FOLD in rows[0]:
                    exist = [has_file(part.path / files.folder, files.name(row)) for row in rows]
                    if 2 * sum(exist) > len(exist):
                        return files._replace(others=tuple(name for name in rows[0] if name != column))
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


def _choose(part: DataPart, files_named: Mapping[str, NamedFiles]) -> dict[SplitName, list[str]]:
    """Return the tables of each split, several if they are shards; empty if there is no table.

    Raises: UserError: several tables name the files, and are neither shards nor those of splits.
    """
    names = [name for name in files_named if not _is_held_out(name, files_named[name])]
    by_split: dict[SplitName | None, list[str]] = {}
    for name in names:
        stem = Path(name).stem
        split = None if is_unlabeled_name(stem) else split_of_name(stem)
        by_split.setdefault(split, []).append(name)
    if "train" in by_split:
        chosen = {split: by_split[split] for split in SPLITS if split in by_split}
        for same in chosen.values():
            if not are_shards(same):
                raise UserError(f"{part}: {list_names(same)} are for the same split; keep one of them")
        return chosen
    unsplit = by_split.get(None, [])
    best = [name for name in unsplit if Path(name).stem == BEST] or unsplit
    if len(best) > 1:
        raise UserError(
            f"{part}: {list_names(best)} name the files in it; keep one of them, or rename one to train.csv"
        )
    return {"train": best} if best else {}


def _is_held_out(table: str, files: NamedFiles) -> bool:
    """Return whether a table that is of no split names the files of a folder that is a held-out split."""
    return split_of_name(Path(table).stem) is None and split_of_name(files.folder) in ("valid", "test")


def _split(part: DataPart, files_named: Mapping[str, NamedFiles]) -> LayoutSplit:
    """Return the files that tables with the same columns name. All columns are kept, and those of the text
    and of the label are copied to `text` and `label`."""
    first = next(iter(files_named))
    names = [name for name in column_names(part.path / first, part.encoding) if name != FILE_NAME_COLUMN]
    copied = _targets([name for name in names if name != files_named[first].column])
    copied = {target: name for target, name in copied.items() if target not in names}
    folders = {files.folder for files in files_named.values()}
    folder = folders.pop() if len(folders) == 1 else ""

    def rows() -> Iterator[LayoutRow]:
        for table, files in files_named.items():
            inside = f"{files.folder}/" if files.folder != folder else ""
            for location, fields in _records(part, table):
                values: str | list[object] = fields if isinstance(fields, str) else ""
                if isinstance(fields, dict):
                    missing = next((name for name in (files.column, *names) if name not in fields), None)
                    values = f"no column '{missing}'; give the table this column"
                    if missing is None:
                        values = [fields[name] for name in (*names, *copied.values())]
                        values.insert(0, f"{inside}{files.name(fields)}")
                yield LayoutRow(f"{part.path / table}, {location}", values)

    tables = [part.path / name for name in files_named]
    return LayoutSplit(tables, part.path / folder, [*names, *copied], rows, repr([*files_named.values()]))


def _targets(names: Sequence[str]) -> dict[str, str]:
    """Return the columns that are read as `text` and as `label`."""
    lower = {name.strip().lower(): name for name in reversed(names)}
    columns = {
        target: next((lower[each] for each in candidates if each in lower), None)
        for target, candidates in TARGETS.items()
    }
    return {target: name for target, name in columns.items() if name is not None}


def _records(part: DataPart, table: str) -> Iterator[Record]:
    """Yield the rows of a table.

    Raises: UserError: the table can't be read.
    """
    path = part.path / table
    yield from read_records(path, column_names(path, part.encoding), encoding=part.encoding)
