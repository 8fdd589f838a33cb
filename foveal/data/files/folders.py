"""Folders of files with texts or labels, given by a metadata table or by a folder for each class.

A zip is read in place like a folder. So is a folder in a zip, at a path such as `photos.zip/train`.
"""

import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record, as_texts, text_error
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import DAMAGED_ZIP_ERRORS, METADATA_FILES, DataPart, damaged_zip_error
from foveal.data.files.listing import Listing
from foveal.data.files.mending import header_hint
from foveal.data.files.sidecars import TEXT_SUFFIX, pairs_with_texts, without_sidecars
from foveal.data.files.split_names import is_unlabeled_name
from foveal.data.files.tables import column_names, list_columns, read_records
from foveal.data.files.text_files import read_text_file
from foveal.data.files.utf8 import AnyPath

FILE_NAME_COLUMN = "file_name"
"""The table's column with the path of the file, relative to the folder."""
FILE_FIELD = "/"
"""The field of a row with the path of the file. No column can have this name."""


def read_folder(
    part: DataPart,
    columns: Sequence[str],
    read: Callable[[Fields], Fields | str] = as_texts,
    choose: Callable[[Sequence[str]], list[str]] = without_sidecars,
) -> Iterator[Row | SkippedRow]:
    """Read a row for each file. Its fields are `FILE_FIELD`, the path, and the fields that `read` returns for
    `columns`.

    `columns` are columns of `metadata.csv` or `metadata.jsonl`, in addition to `file_name`. Without such a
    table, each folder inside is a class: the name of the folder is the `label` of all files in it, at any
    depth. Without folders, or for another column, the text beside each file (`1.txt` beside `1.png`) is the
    column. Hidden files are ignored. `choose` chooses the files of the classes among all.

    Raises: UserError: there is neither a table, nor a folder for each class, nor a text beside each file; the
    table is damaged or lacks a column; or no file can be used.
    """
    listing = part.listing
    find = _file_finder(listing.root, part.encoding)

    def check(fields: Fields) -> Fields | str:
        named = as_texts({FILE_NAME_COLUMN: fields[FILE_NAME_COLUMN]})
        return named if isinstance(named, str) else check_found({**fields, **named})

    def check_found(fields: Fields) -> Fields | str:
        texts = read({column: fields[column] for column in columns})
        if isinstance(texts, str):
            return texts
        file = find(fields[FILE_NAME_COLUMN])
        return file if isinstance(file, str) else {FILE_FIELD: file, **texts}

    tables = [listing.file(name) for name in METADATA_FILES if name in listing.files]
    if len(tables) > 1:
        raise UserError(f"{listing.name}: has {' and '.join(METADATA_FILES)}; keep one of them")
    if tables:
        names: list[str] = []
        with suppress(UserError, *DAMAGED_ZIP_ERRORS):  # the reader below reports the error
            names = column_names(tables[0], part.encoding)
        if FILE_NAME_COLUMN not in names and (hint := header_hint(tuple(names))):
            raise UserError(
                f"{tables[0]}: no column '{FILE_NAME_COLUMN}' among {list_columns(names)}; {hint}"
            )
        return validate_rows(str(tables[0]), _records(tables[0], columns, part.encoding), check)
    if list(columns) == ["label"] and listing.folders:
        return validate_rows(listing.name, _by_class(listing, choose), check_found)
    if len(columns) == 1 and TEXT_SUFFIX in part.sidecars:
        return validate_rows(listing.name, _by_sidecar(part, columns[0]), check_found)
    raise no_table_error(listing.name, columns, "files")


def no_table_error(name: str, columns: Sequence[str], things: str) -> UserError:
    """Return the error for a folder of `things` with neither a table nor a folder for each class."""
    classes = f", nor a folder of {things} for each label" if list(columns) == ["label"] else ""
    return UserError(
        f"{name}: no {' or '.join(METADATA_FILES)} in it "
        f"(columns {', '.join([FILE_NAME_COLUMN, *columns])}){classes}; make one"
    )


def _records(table: AnyPath, columns: Sequence[str], encoding: str) -> Iterator[Record]:
    try:
        yield from read_records(table, [FILE_NAME_COLUMN, *columns], encoding=encoding)
    except DAMAGED_ZIP_ERRORS as error:
        raise damaged_zip_error(table, error) from None


def _by_class(listing: Listing, choose: Callable[[Sequence[str]], list[str]]) -> Iterator[Record]:
    """Yield the name and the label of each file.

    Raises: UserError: the name of a label's folder is not UTF-8.
    """
    check_class_names(listing)
    filled = set()
    for name in choose([*listing.walk()]):
        label, *rest = Path(name).parts
        filled.add(label)
        if rest and is_unlabeled_name(label) and len(listing.folders) > 2:
            yield name, f"in a folder {label} beside those of labels; foveal predict answers it"
        elif rest:
            yield name, {FILE_NAME_COLUMN: name, "label": label}
        else:
            yield name, "not in a folder of a label; move it to one"
    for entry in listing.entries:
        if entry.name not in filled:
            yield entry.name, "a folder of a label without files; fill it or remove it"


def _by_sidecar(part: DataPart, column: str) -> Iterator[Record]:
    """Yield the name of each file, and the text beside it."""
    for name, text_name in pairs_with_texts([*part.listing.walk()]):
        if text_name is None:
            yield name, f"no text beside it; write {os.path.splitext(name)[0]}{TEXT_SUFFIX}, or move it away"
            continue
        text = read_text_file(part.listing.file(text_name), part.encoding)
        reason = text.reason and f"{text_name}: {text.reason}"
        yield name, reason or {FILE_NAME_COLUMN: name, column: text.text}


def _file_finder(path: AnyPath, encoding: str) -> Callable[[str], AnyPath | str]:
    """Return a function from a name to the file in the folder `path`, or to the reason why there is none."""
    if isinstance(path, zipfile.Path):
        archive = path

        def find(name: str) -> AnyPath | str:
            file = archive / os.path.normpath(name)
            return file if file.is_file() else _missing_file(name)

    else:
        folder, root = path, path.resolve()

        def find(name: str) -> AnyPath | str:
            if not is_inside(root, name):
                return f"{name} leads out of the folder; move the file into it"
            return folder / name if os.path.isfile(root / name) else _missing_file(name)

    def find_any(name: str) -> AnyPath | str:
        file = find(name)
        if not isinstance(file, str):
            return file
        others = map(find, other_spellings(name, encoding))
        return next((other for other in others if not isinstance(other, str)), file)

    return find_any


def other_spellings(name: str, encoding: str) -> list[str]:
    """Return how the name of a file in a table may be spelled on disk: with slashes in place of backslashes,
    and in `encoding`."""
    spellings = [name.replace("\\", "/")]
    if encoding:
        spellings += [os.fsdecode(each.encode(encoding, "replace")) for each in (name, *spellings)]
    return [each for each in spellings if each != name]


def check_class_names(listing: Listing) -> None:
    """Check the names of the folders of labels.

    Raises: UserError: a name is not UTF-8.
    """
    for folder in listing.folders:
        if text_error("label", folder):
            raise UserError(f"{listing.name}: the name of the folder {folder!r} is not UTF-8; rename it")


def is_inside(root: Path, name: str) -> bool:
    """Return whether the file or folder `name` is in the folder `root`, or in a folder linked from there.

    A file that is itself a link to a file elsewhere is not.
    """
    file = Path(os.path.realpath(root / name))
    if file.is_relative_to(root):
        return True
    linked = Path(os.path.normpath(root / name))
    is_named_inside = linked.is_relative_to(root) and linked != root
    return is_named_inside and (file.is_dir() or file.is_relative_to(os.path.realpath(linked.parent)))


def _missing_file(name: str) -> str:
    return f"no such file: {name}; fix the name or leave the row out"
