"""Where pictures are: single files, folders and zips of them, labelled or not."""

import os
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.folders import TABLES, files_in, open_folder, read_folder
from foveal.data.parts import part_files
from foveal.data.pictures import SUFFIXES, Pixels, read_picture
from foveal.data.rows import Aside, Row
from foveal.data.text import File

HEAVIEST = 1 << 27
"""Bytes of the largest file that is opened."""
SOME = 100
"""Files of a folder that are looked at to see what it is for."""


def labelled_files(data: str, label: str) -> Iterator[Row | Aside]:
    """Each picture of a folder or zip: fields `image`, a file, its `name` and its `label`.

    `label` is the column of the folder's table, if it has one. Errors: those of `read_folder`.
    """
    folder = open_folder(data)
    has_table = any((folder / name).is_file() for name in TABLES)
    column = label if has_table else "label"
    for row in read_folder(folder, (column,)):
        if isinstance(row, Aside):
            yield row
        else:
            file = row.fields["file"]
            yield Row(row.place, {"image": file, "name": str(file), "label": row.fields[column]})


def picture_files(data: str) -> Iterator[Row]:
    """A picture, or all in a folder or zip: fields `image`, a file, and its `name`."""
    path = Path(data)
    if path.is_file() and not is_archive(path):
        files: Iterator[File] = iter([path])
    else:
        folder = open_folder(data)
        files = (folder / name for name in files_in(folder) if _is_picture(name))
    for file in files:
        yield Row(str(file), {"image": file, "name": str(file)})


def pixels_of(file: File, size: int, channels: int) -> Pixels | str:
    """What `read_picture` makes of a file; or why it can't be read."""
    try:
        if _weight(file) > HEAVIEST:
            return f"a file of more than {HEAVIEST >> 20} MiB; make it smaller"
        with file.open("rb") as opened:
            content = opened.read(HEAVIEST)
    except Exception as error:  # of the system, and of zipfile and its decompressors, of many kinds
        return f"can't be read: {error}; get the file anew"
    return read_picture(content, size, channels)


def is_pictures(data: str) -> bool:
    """Whether there are pictures at a path: a picture, or a folder or zip of which the first files are."""
    try:
        path = Path(part_files(data)["train"])
        if path.is_file() and not is_archive(path):
            return _is_picture(path.name)
        folder = open_folder(str(path))
        first = [*islice((name for name in files_in(folder) if name not in TABLES), SOME)]
    except UserError:  # whose reader says what is wrong
        return False
    return 2 * sum(map(_is_picture, first)) > len(first)


def is_archive(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _is_picture(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _weight(file: File) -> int:
    """Bytes in it."""
    if isinstance(file, zipfile.Path):
        return file.root.getinfo(file.at).file_size
    return os.stat(file).st_size
