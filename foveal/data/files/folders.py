"""Folders of files, each with a text or a label: said by a table in the folder, or by a folder a class.

A zip is a folder too, read in place; so is a folder in it, at a path such as `photos.zip/train`.
"""

import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.tables import read_records
from foveal.data.files.utf8 import AnyPath

METADATA_FILES = ("metadata.csv", "metadata.jsonl")
FILE_NAME_COLUMN = "file_name"
"""The table's column with the path of the file, seen from the folder."""
FILE_FIELD = "/"
"""The field with the file itself: a name that no column has."""
SPLIT_FOLDERS = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}
"""By the name of a folder which part of a data set is in it."""


def open_folder(data: str) -> AnyPath:
    """The folder at a path, or a zip's inside: of one that has nothing but a folder, that folder.

    Errors: UserError for a file that is no zip.
    """
    path = Path(data)
    archive = next((above for above in (path, *path.parents) if above.is_file()), None)
    if archive is None:
        return path
    try:
        folder: AnyPath = zipfile.Path(archive)
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"{archive}: not a folder, nor readable as a zip: {error}; get it anew") from None
    if path != archive:
        return folder / f"{path.relative_to(archive).as_posix()}/"
    while len(inside := list_visible(folder)) == 1 and inside[0].is_dir():
        (folder,) = inside
    return folder


def metadata_table(folder: AnyPath) -> AnyPath | None:
    """That says what belongs to each file of a folder."""
    tables: Iterator[AnyPath] = (folder / name for name in METADATA_FILES)
    return next((table for table in tables if table.is_file()), None)


def is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def list_visible(folder: AnyPath) -> list[AnyPath]:
    """What is in a folder, in order; hidden files, and what macOS puts beside them in a zip, are left out."""
    try:
        return _sorted_visible(folder.iterdir())
    except OSError as error:
        raise UserError(f"{folder}: can't read: {error.strerror}") from None


def cached_lister(folder: AnyPath) -> Callable[[AnyPath], list[AnyPath]]:
    """`list_visible`, for many folders inside one: a zip's members are gone through once."""
    if not isinstance(folder, zipfile.Path):
        return list_visible
    archive, inside = folder.root, dict[str, list[str]]()
    for name in archive.namelist():
        inside.setdefault(os.path.dirname(name.rstrip("/")), []).append(name)

    def in_zip(path: AnyPath) -> list[AnyPath]:
        names = inside.get(path.at.rstrip("/"), []) if isinstance(path, zipfile.Path) else []
        return _sorted_visible(zipfile.Path(archive, name) for name in names)

    return in_zip


def _sorted_visible(inside: Iterable[AnyPath]) -> list[AnyPath]:
    shown = (path for path in inside if not path.name.startswith(".") and path.name != "__MACOSX")
    return sorted(shown, key=lambda path: path.name)


def split_folders(data: str) -> dict[str, str]:
    """By part the folders inside, `train` among them, of a folder or a zip that has no others, and no table.

    Errors: UserError for two folders of the same part.
    """
    is_zip = data.lower().endswith(".zip") and os.path.isfile(data)
    if not is_zip and not os.path.isdir(data):
        return {}
    folder = open_folder(data)
    inside = list_visible(folder)
    found = {path.name: path for path in inside if path.is_dir()}
    has_table = any(path.name in METADATA_FILES for path in inside)
    if has_table or "train" not in found or not found.keys() <= SPLIT_FOLDERS.keys():
        return {}
    parts = {SPLIT_FOLDERS[name]: str(path).rstrip("/") for name, path in found.items()}
    if len(parts) < len(found):
        raise UserError(f"{data}: {', '.join(found)} are several folders of the same part; keep one of each")
    return {part: parts[part] for part in ("train", "valid", "test") if part in parts}


def read_folder(
    path: AnyPath, columns: Sequence[str], read: Callable[[Fields], Fields | str] = as_texts
) -> Iterator[Row | SkippedRow]:
    """A row for each file: `FILE_FIELD` (the path of a file in the folder), and what `read` makes of `columns`.

    They are columns of `metadata.csv` or `metadata.jsonl`, `file_name` or others beside it. Without such a
    table a folder inside is a class: `label` is its name, of all files in it at any depth; hidden ones are
    left out.
    Errors: UserError for a folder that is neither, for a table that is damaged or lacks a column, and where
    no file can be used.
    """
    find, folder = _file_finder(path), str(path).rstrip("/")

    def check(fields: Fields) -> Fields | str:
        named = as_texts({FILE_NAME_COLUMN: fields[FILE_NAME_COLUMN]})
        texts = read({column: fields[column] for column in columns})
        if isinstance(named, str) or isinstance(texts, str):
            return named if isinstance(named, str) else texts
        file = find(named[FILE_NAME_COLUMN])
        return file if isinstance(file, str) else {FILE_FIELD: file, **texts}

    tables = [path / name for name in METADATA_FILES if (path / name).is_file()]
    if len(tables) > 1:
        raise UserError(f"{folder}: has {' and '.join(METADATA_FILES)}; keep one of them")
    if tables:
        return validate_rows(str(tables[0]), _records(tables[0], columns), check)
    if list(columns) == ["label"] and any(inside.is_dir() for inside in list_visible(path)):
        return validate_rows(folder, _by_class(path), check)
    classes = ", nor a folder of files for each label" if list(columns) == ["label"] else ""
    raise UserError(
        f"{folder}: no {' or '.join(METADATA_FILES)} in it (columns {', '.join([FILE_NAME_COLUMN, *columns])}){classes}; make one"
    )


def walk_files(path: AnyPath) -> Iterator[str]:
    """The names of all files in a folder, at any depth, seen from it; hidden ones are left out."""
    if isinstance(path, zipfile.Path):
        start = len(path.at)
        for name in sorted(name[start:] for name in path.root.namelist() if name.startswith(path.at)):
            parts = name.split("/")
            if parts[-1] and parts[0] != "__MACOSX" and not any(part.startswith(".") for part in parts):
                yield name
        return
    for folder, inside, names in os.walk(path, onerror=_raise_unreadable):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            yield str(Path(folder, name).relative_to(path))


def _records(table: AnyPath, columns: Sequence[str]) -> Iterator[Record]:
    try:
        yield from read_records(table, [FILE_NAME_COLUMN, *columns])
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # damaged, or encrypted
        raise UserError(f"{table}: can't read: {error}; make the zip anew") from None


def _by_class(path: AnyPath) -> Iterator[Record]:
    filled = set()
    for name in walk_files(path):
        label, *rest = Path(name).parts
        filled.add(label)
        yield (
            name,
            {FILE_NAME_COLUMN: name, "label": label}
            if rest
            else "stands in no folder of a label; move it to one",
        )
    for folder in list_visible(path):
        if folder.name not in filled:
            yield folder.name, "a folder of a label without files; fill it or remove it"


def _file_finder(path: AnyPath) -> Callable[[str], AnyPath | str]:
    """A function from a name to the file in the folder `path`, or to why there is none."""
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
    return f"no such file: {name}; mend the name or leave the row out"


def _raise_unreadable(error: OSError) -> None:
    raise UserError(f"{error.filename}: can't read: {error.strerror}")
