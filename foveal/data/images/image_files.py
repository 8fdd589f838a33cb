"""Where pictures are: single files, folders and zips of them, labelled or not."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.folders import (
    FILE_FIELD,
    FILE_NAME_COLUMN,
    is_zip,
    metadata_table,
    open_folder,
    read_folder,
    walk_files,
)
from foveal.data.files.tables import read_records
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_arrays import array_splits, has_many_images, read_images
from foveal.data.images.image_decoding import IMAGE_SUFFIXES, DecodedImage, decode_image, image_from_array


def labeled_images(data: str, label: str) -> Iterator[Row | SkippedRow]:
    """Each picture at a path: `image` (a file, its bytes, or an array), its `name` and its `label`.

    `label` is the column of a folder's table, or of a table of pictures. Errors: UserError for what concerns
    all of it.
    """
    if has_many_images(data):
        yield from with_names(validate_rows(data, read_images(data, label), _label_as_text))
        return
    folder = open_folder(data)
    yield from _in_folder(folder, "label" if metadata_table(folder) is None else label)


def captioned_images(data: str, column: str) -> Iterator[Row | SkippedRow]:
    """The same with a text as `label`; pictures of a folder that its table does not name are set aside."""
    if has_many_images(data):
        yield from labeled_images(data, column)
        return
    folder = open_folder(data)
    yield from _in_folder(folder, column)
    yield from unlisted_images(folder)


def unlabeled_images(data: str) -> Iterator[Row | SkippedRow]:
    """A picture, or all of a folder, a zip or another file that holds many: `image` and `name`."""
    path, sets = Path(data), array_splits(data)
    if sets or has_many_images(data):
        for one in sets.values() or [data]:
            yield from with_names(validate_rows(one, read_images(one, None), _as_is))
        return
    if path.is_file() and not is_zip(path):
        files: Iterator[AnyPath] = iter([path])
    else:
        folder = open_folder(data)
        files = (folder / name for name in walk_files(folder) if is_image_name(name))
    none = True
    for file in files:
        none = False
        yield Row(str(file), {"image": file, "name": str(file)})
    if none:
        raise UserError(
            f"{data}: no pictures in it ({', '.join(IMAGE_SUFFIXES)}); give others, or rename them"
        )


def load_image(image: AnyPath | bytes | NDArray[Any], size: int, channels: int) -> DecodedImage | str:
    """What is in a file, or an array; or why it is no picture."""
    if isinstance(image, np.ndarray):
        return image_from_array(image, size, channels)
    content = image if isinstance(image, bytes) else read_file_bytes(image)
    return content if isinstance(content, str) else decode_image(content, size, channels)


def _in_folder(folder: AnyPath, column: str) -> Iterator[Row | SkippedRow]:
    for row in read_folder(folder, (column,)):
        if isinstance(row, Row):
            file = row.fields[FILE_FIELD]
            row = Row(row.location, {"image": file, "name": str(file), "label": row.fields[column].strip()})
        yield row


def unlisted_images(folder: AnyPath) -> Iterator[SkippedRow]:
    """The pictures that the folder's table does not name."""
    table = metadata_table(folder)
    if table is None:
        return
    names = (
        found[FILE_NAME_COLUMN]
        for _, found in read_records(table, [FILE_NAME_COLUMN])
        if isinstance(found, dict)
    )
    named = {os.path.normpath(name) for name in names if isinstance(name, str)}
    for name in walk_files(folder):
        if is_image_name(name) and name not in named:
            why = f"no row of {table.name} names it; write one, or take the picture away"
            yield SkippedRow(str(folder / name), why)


def _label_as_text(fields: Fields) -> Fields | str:
    texts = as_texts({"label": fields["label"]})
    return texts if isinstance(texts, str) else fields | {"label": texts["label"].strip()}


def _as_is(fields: Fields) -> Fields:
    return fields


def with_names(rows: Iterator[Row | SkippedRow]) -> Iterator[Row | SkippedRow]:
    """With its file as the name of each, or where it is in one of many."""
    for row in rows:
        if isinstance(row, Row):
            image = row.fields["image"]
            row = Row(
                row.location, row.fields | {"name": str(image) if isinstance(image, Path) else row.location}
            )
        yield row


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_SUFFIXES)
