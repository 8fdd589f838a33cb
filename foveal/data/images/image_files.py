"""Images in single files, folders and zips, with labels, with texts, or without."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import DataPart, open_part
from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.folders import (
    FILE_FIELD,
    FILE_NAME_COLUMN,
    read_folder,
)
from foveal.data.files.tables import read_records
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_arrays import array_splits, has_many_images, read_images
from foveal.data.images.image_decoding import IMAGE_SUFFIXES, DecodedImage, decode_image, image_from_array
from foveal.store.cache import ORIGINS_FILE


def labeled_images(part: DataPart, label: str) -> Iterator[Row | SkippedRow]:
    """Read each image: `image` (a file, its bytes, or an array), its `name` and its `label`.

    `label` is the column of a folder's table, or of a table of images.

    Raises: UserError: no image can be used.
    """
    if has_many_images(part):
        yield from with_names(validate_rows(str(part), read_images(part, label), _label_as_text))
        return
    yield from _in_folder(part, "label" if part.table is None else label)


def captioned_images(part: DataPart, column: str) -> Iterator[Row | SkippedRow]:
    """Read each image with a text as `label`. Images that are not in the folder's table are skipped."""
    if has_many_images(part):
        yield from labeled_images(part, column)
        return
    yield from _in_folder(part, column)
    yield from unlisted_images(part)


def unlabeled_images(part: DataPart) -> Iterator[Row | SkippedRow]:
    """Read `image` and `name` of an image file, or of all images in a folder, a zip or a file of many images.

    Raises: UserError: there are no images.
    """
    locations = array_splits(part)
    if locations or has_many_images(part):
        for split in map(open_part, locations.values()) if locations else [part]:
            yield from with_names(validate_rows(str(split), read_images(split, None), _unchanged))
        return
    files: Iterable[AnyPath] = [part.path]
    if part.is_folder or not part.is_file:
        listing = part.listing
        files = (listing.file(name) for name in listing.walk() if is_image_name(name))
    is_empty = True
    for file in files:
        is_empty = False
        yield Row(str(file), {"image": file, "name": str(file)})
    if is_empty:
        raise UserError(f"{part}: no images in it ({', '.join(IMAGE_SUFFIXES)}); give others, or rename them")


def are_images(part: DataPart) -> bool:
    """Return whether the part is an image, a file of many images, or a folder whose first files
    are images."""
    if has_many_images(part):
        return True
    if not part.is_folder:
        return part.is_file and is_image_name(part.path.name)
    first = part.first_files
    images = [name for name in first if is_image_name(name)]
    stems = {os.path.splitext(name)[0] for name in images}
    beside = sum(not is_image_name(name) and os.path.splitext(name)[0] in stems for name in first)
    return 2 * len(images) > len(first) - beside


def load_image(image: AnyPath | bytes | NDArray[Any], size: int, channels: int) -> DecodedImage | str:
    """Decode the image in a file or an array, or return the reason why it can't be decoded."""
    if isinstance(image, np.ndarray):
        return image_from_array(image, size, channels)
    content = image if isinstance(image, bytes) else read_file_bytes(image)
    return content if isinstance(content, str) else decode_image(content, size, channels)


def _in_folder(part: DataPart, column: str) -> Iterator[Row | SkippedRow]:
    for row in read_folder(part, (column,)):
        if isinstance(row, Row):
            file = row.fields[FILE_FIELD]
            row = Row(row.location, {"image": file, "name": str(file), "label": row.fields[column].strip()})
        yield row


def unlisted_images(part: DataPart) -> Iterator[SkippedRow]:
    """Yield the images of a folder that are not in its table. A table that was rewritten for a split may name
    only some of the images of a folder that splits share."""
    table = part.table
    if table is None or part.listing.file(ORIGINS_FILE).is_file():
        return
    records = read_records(table, [FILE_NAME_COLUMN], encoding=part.encoding)
    names = (record[FILE_NAME_COLUMN] for _, record in records if isinstance(record, dict))
    texts = [name for name in names if isinstance(name, str)]
    listed = {os.path.normpath(text) for name in texts for text in (name, name.replace("\\", "/"))}
    for name in part.listing.walk():
        if is_image_name(name) and name not in listed:
            reason = f"no row of {table.name} names it; add a row, or remove the image"
            yield SkippedRow(str(part.listing.file(name)), reason)


def _label_as_text(fields: Fields) -> Fields | str:
    texts = as_texts({"label": fields["label"]})
    return texts if isinstance(texts, str) else fields | {"label": texts["label"].strip()}


def _unchanged(fields: Fields) -> Fields:
    return fields


def with_names(rows: Iterator[Row | SkippedRow]) -> Iterator[Row | SkippedRow]:
    """Add the field `name`: the path of the image's file, or the location in a file of many images."""
    for row in rows:
        if isinstance(row, Row):
            image = row.fields["image"]
            row = Row(
                row.location, row.fields | {"name": str(image) if isinstance(image, Path) else row.location}
            )
        yield row


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_SUFFIXES)
