"""Where pictures are: single files, folders and zips of them, labelled or not."""

import os
import stat
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, as_texts
from foveal.data.core.rows import Aside, Row, checked
from foveal.data.files.folders import FILE, NAME, TABLES, files_in, open_folder, read_folder
from foveal.data.files.tables import read_records
from foveal.data.files.utf8 import File
from foveal.data.images.decode_limits import is_bomb
from foveal.data.images.image_arrays import is_set, part_sets, pictures_in
from foveal.data.images.image_decoding import SUFFIXES, Picture, from_array, read_picture
from foveal.data.prepare_examples import part_files

HEAVIEST = 1 << 27
"""Bytes of the largest file that is opened."""
SOME = 100
"""Files of a folder that are looked at to see what it is for."""


def labelled_pictures(data: str, label: str) -> Iterator[Row | Aside]:
    """Each picture at a path: `image` (a file, its bytes, or an array), its `name` and its `label`.

    `label` is the column of a folder's table, or of a table of pictures. Errors: UserError for what concerns
    all of it.
    """
    if is_set(data):
        yield from named(checked(data, pictures_in(data, label), _with_text))
        return
    folder = open_folder(data)
    yield from _in_folder(folder, "label" if table_of(folder) is None else label)


def captioned_pictures(data: str, column: str) -> Iterator[Row | Aside]:
    """The same with a text as `label`; pictures of a folder that its table does not name are set aside."""
    if is_set(data):
        yield from labelled_pictures(data, column)
        return
    folder = open_folder(data)
    yield from _in_folder(folder, column)
    yield from unnamed_pictures(folder)


def unlabelled_pictures(data: str) -> Iterator[Row | Aside]:
    """A picture, or all of a folder, a zip or another file that holds many: `image` and `name`."""
    path, sets = Path(data), part_sets(data)
    if sets or is_set(data):
        for one in sets.values() or [data]:
            yield from named(checked(one, pictures_in(one, None), _as_is))
        return
    if path.is_file() and not is_archive(path):
        files: Iterator[File] = iter([path])
    else:
        folder = open_folder(data)
        files = (folder / name for name in files_in(folder) if _is_picture(name))
    none = True
    for file in files:
        none = False
        yield Row(str(file), {"image": file, "name": str(file)})
    if none:
        raise UserError(f"{data}: no pictures in it ({', '.join(SUFFIXES)}); give others, or rename them")


def picture_of(image: File | bytes | NDArray[Any], size: int, channels: int) -> Picture | str:
    """What is in a file, or an array; or why it is no picture."""
    if isinstance(image, np.ndarray):
        return from_array(image, size, channels)
    content = image if isinstance(image, bytes) else content_of(image)
    return content if isinstance(content, str) else read_picture(content, size, channels)


def content_of(image: File) -> bytes | str:
    """What is in the file of a picture; or why it is not opened."""
    try:
        weight = _weight(image)
        if isinstance(weight, str):
            return weight
        with image.open("rb") as opened:
            return opened.read(weight)  # of a zip's member no more is unpacked
    except Exception as error:  # of the system, and of zipfile and its decompressors, of many kinds
        return f"can't be read: {getattr(error, 'strerror', None) or error}; get the file anew"


def is_pictures(data: str) -> bool:
    """Whether a path is a picture, a file that holds many, or a folder or zip whose first files are some."""
    try:
        if part_sets(data):
            return True
        path = Path(part_files(data)["train"])
        if path.is_file() and not is_archive(path):
            return is_set(str(path)) or _is_picture(path.name)
        folder = open_folder(str(path))
        first = [*islice((name for name in files_in(folder) if name not in TABLES), SOME)]
    except UserError:  # whose reader says what is wrong
        return False
    return 2 * sum(map(_is_picture, first)) > len(first)


def _in_folder(folder: File, column: str) -> Iterator[Row | Aside]:
    for row in read_folder(folder, (column,)):
        if isinstance(row, Row):
            file = row.fields[FILE]
            row = Row(row.place, {"image": file, "name": str(file), "label": row.fields[column].strip()})
        yield row


def unnamed_pictures(folder: File) -> Iterator[Aside]:
    """The pictures that the folder's table does not name."""
    table = table_of(folder)
    if table is None:
        return
    names = (found[NAME] for _, found in read_records(table, [NAME]) if isinstance(found, dict))
    named = {os.path.normpath(name) for name in names if isinstance(name, str)}
    for name in files_in(folder):
        if _is_picture(name) and name not in named:
            why = f"no row of {table.name} names it; write one, or take the picture away"
            yield Aside(str(folder / name), why)


def _with_text(fields: Fields) -> Fields | str:
    texts = as_texts({"label": fields["label"]})
    return texts if isinstance(texts, str) else fields | {"label": texts["label"].strip()}


def _as_is(fields: Fields) -> Fields:
    return fields


def named(rows: Iterator[Row | Aside]) -> Iterator[Row | Aside]:
    """With its file as the name of each, or where it is in one of many."""
    for row in rows:
        if isinstance(row, Row):
            image = row.fields["image"]
            row = Row(row.place, row.fields | {"name": str(image) if isinstance(image, Path) else row.place})
        yield row


def table_of(folder: File) -> File | None:
    """That says what belongs to each file of a folder."""
    tables: Iterator[File] = (folder / name for name in TABLES)
    return next((table for table in tables if table.is_file()), None)


def is_archive(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _is_picture(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _weight(file: File) -> int | str:
    """Bytes in it, or why it is not to be opened."""
    if isinstance(file, zipfile.Path):
        member = file.root.getinfo(file.at)
        size, packed = member.file_size, member.compress_size
        if is_bomb(packed, size):
            return f"{packed:,} bytes that say they are {size:,} unpacked; leave it out"
    else:
        status = os.stat(file)
        size = status.st_size
        if stat.S_ISDIR(status.st_mode):
            return "a folder, and one picture is wanted; name one in it"
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
            return "neither a file nor a folder; take it away"
    return f"a file of more than {HEAVIEST >> 20} MiB; make it smaller" if size > HEAVIEST else size
