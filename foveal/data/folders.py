"""Folders of files, each with a text or a label: said by a table in the folder, or by a folder a class."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.fields import Fields, Found, as_texts
from foveal.data.rows import Aside, Row, checked
from foveal.data.tables import read_records

TABLES = ("metadata.csv", "metadata.jsonl")
NAME = "file_name"
"""The table's column with the path of the file, seen from the folder."""


def read_folder(path: Path, columns: Sequence[str]) -> Iterator[Row | Aside]:
    """A row for each file: `file` (the Path of a file in the folder), and `columns`.

    They are columns of `metadata.csv` or `metadata.jsonl`, beside `file_name`. Without such a table a folder
    inside is a class: `label` is its name, of all files in it at any depth; hidden ones are left out.
    Errors: UserError for a folder that is neither, for a table that is damaged or lacks a column, and where
    no file can be used.
    """
    root = path.resolve()

    def check(fields: Fields) -> Fields | str:
        texts = as_texts(fields)
        if isinstance(texts, str):
            return texts
        name = texts.pop(NAME)
        return _unusable(root, name) or {"file": path / name, **texts}

    tables = [path / name for name in TABLES if (path / name).is_file()]
    if len(tables) > 1:
        raise UserError(f"{path}: has {' and '.join(TABLES)}; keep one of them")
    if tables:
        return checked(str(tables[0]), read_records(tables[0], [NAME, *columns]), check)
    if list(columns) == ["label"] and any(_is_class(inside) for inside in path.iterdir()):
        return checked(str(path), _by_class(path), check)
    classes = ", nor a folder of files for each label" if list(columns) == ["label"] else ""
    raise UserError(
        f"{path}: no {' or '.join(TABLES)} in it (columns {', '.join([NAME, *columns])}){classes}; make one"
    )


def _by_class(path: Path) -> Iterator[Found]:
    for folder, inside, names in os.walk(path, onerror=_unreadable):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            file = Path(folder, name).relative_to(path)
            label = file.parts[0]
            alone = "stands in no folder of a label; move it to one"
            yield str(file), {NAME: str(file), "label": label} if len(file.parts) > 1 else alone


def _unusable(root: Path, name: str) -> str:
    """Why `name` leads to no file in `root`; empty if it does."""
    path = Path(os.path.realpath(root / name))
    if not path.is_relative_to(root):
        return f"{name} leads out of the folder; move the file into it"
    return "" if os.path.isfile(path) else f"no such file: {name}; mend the name or leave the row out"


def _is_class(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _unreadable(error: OSError) -> None:
    raise UserError(f"{error.filename}: can't read: {error.strerror}")
