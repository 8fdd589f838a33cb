"""Folders of files with texts or labels, given by a metadata table or by a folder for each class.

A zip is read in place like a folder. So is a folder in a zip, at a path such as `photos.zip/train`.
"""

import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import DAMAGED_ZIP_ERRORS, METADATA_FILES, damaged_zip_error
from foveal.data.files.listing import Listing
from foveal.data.files.mending import header_hint
from foveal.data.files.tables import column_names, list_columns, read_records
from foveal.data.files.utf8 import AnyPath

FILE_NAME_COLUMN = "file_name"
"""The table's column with the path of the file, relative to the folder."""
FILE_FIELD = "/"
"""The field of a row with the path of the file. No column can have this name."""
SNIFFED_FILES = 100
"""Files of a folder that are looked at to decide its kind."""


def read_folder(
    listing: Listing, columns: Sequence[str], read: Callable[[Fields], Fields | str] = as_texts
) -> Iterator[Row | SkippedRow]:
    """Read a row for each file. Its fields are `FILE_FIELD`, the path, and the fields that `read` returns for
    `columns`.

    `columns` are columns of `metadata.csv` or `metadata.jsonl`, in addition to `file_name`. Without such a
    table, each folder inside is a class: the name of the folder is the `label` of all files in it, at any
    depth. Hidden files are ignored.

    Raises: UserError: there is neither a table nor a folder for each class, the table is damaged or lacks a
    column, or no file can be used.
    """
    find = _file_finder(listing.root)

    def check(fields: Fields) -> Fields | str:
        named = as_texts({FILE_NAME_COLUMN: fields[FILE_NAME_COLUMN]})
        texts = read({column: fields[column] for column in columns})
        if isinstance(named, str) or isinstance(texts, str):
            return named if isinstance(named, str) else texts
        file = find(named[FILE_NAME_COLUMN])
        return file if isinstance(file, str) else {FILE_FIELD: file, **texts}

    tables = [listing.file(name) for name in METADATA_FILES if name in listing.files]
    if len(tables) > 1:
        raise UserError(f"{listing.name}: has {' and '.join(METADATA_FILES)}; keep one of them")
    if tables:
        names: list[str] = []
        with suppress(UserError, *DAMAGED_ZIP_ERRORS):  # the reader below reports the error
            names = column_names(tables[0])
        if FILE_NAME_COLUMN not in names and (hint := header_hint(tuple(names))):
            raise UserError(
                f"{tables[0]}: no column '{FILE_NAME_COLUMN}' among {list_columns(names)}; {hint}"
            )
        return validate_rows(str(tables[0]), _records(tables[0], columns), check)
    if list(columns) == ["label"] and listing.folders:
        return validate_rows(listing.name, _by_class(listing), check)
    raise no_table_error(listing.name, columns, "files")


def first_files(listing: Listing) -> list[str]:
    """Return the names of a folder's first files, which decide its kind."""
    return [*islice((name for name in listing.walk() if name not in METADATA_FILES), SNIFFED_FILES)]


def no_table_error(name: str, columns: Sequence[str], things: str) -> UserError:
    """Return the error for a folder of `things` with neither a table nor a folder for each class."""
    classes = f", nor a folder of {things} for each label" if list(columns) == ["label"] else ""
    return UserError(
        f"{name}: no {' or '.join(METADATA_FILES)} in it "
        f"(columns {', '.join([FILE_NAME_COLUMN, *columns])}){classes}; make one"
    )


def _records(table: AnyPath, columns: Sequence[str]) -> Iterator[Record]:
    try:
        yield from read_records(table, [FILE_NAME_COLUMN, *columns])
    except DAMAGED_ZIP_ERRORS as error:
        raise damaged_zip_error(table, error) from None


def _by_class(listing: Listing) -> Iterator[Record]:
    filled = set()
    for name in listing.walk():
        label, *rest = Path(name).parts
        filled.add(label)
        if rest:
            yield name, {FILE_NAME_COLUMN: name, "label": label}
        else:
            yield name, "not in a folder of a label; move it to one"
    for entry in listing.entries:
        if entry.name not in filled:
            yield entry.name, "a folder of a label without files; fill it or remove it"


def _file_finder(path: AnyPath) -> Callable[[str], AnyPath | str]:
    """Return a function from a name to the file in the folder `path`, or to the reason why there is none."""
    if isinstance(path, zipfile.Path):
        archive = path

        def in_zip(name: str) -> AnyPath | str:
            file = archive / os.path.normpath(name)
            return file if file.is_file() else _missing_file(name)

        return in_zip
    folder, root = path, path.resolve()

    def on_disk(name: str) -> AnyPath | str:
        file = Path(os.path.realpath(root / name))
        if not file.is_relative_to(root):
            return f"{name} leads out of the folder; move the file into it"
        return folder / name if os.path.isfile(file) else _missing_file(name)

    return on_disk


def _missing_file(name: str) -> str:
    return f"no such file: {name}; fix the name or leave the row out"
