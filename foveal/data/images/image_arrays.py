"""Many labelled pictures in a file: IDX (the form of MNIST), NumPy arrays, tables."""

import gzip
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record
from foveal.data.files.file_bytes import is_decompression_bomb
from foveal.data.files.folders import SPLIT_FOLDERS
from foveal.data.files.tables import TABLE_SUFFIXES as TABLES
from foveal.data.files.tables import column_names, read_records
from foveal.data.files.utf8 import open_file
from foveal.data.images.image_decoding import IMAGE_SUFFIXES, to_uint8, white_level

IDX_NAME = re.compile(r"(?P<part>.*)images[-.]idx[34]-ubyte(\.gz)?")
IDX_SPLITS = {"train": "train", "t10k": "test", "test": "test", "valid": "valid"}
"""By a word in the name of an IDX file which part is in it."""
NPZ_ARRAY_NAMES = (("x_{}", "y_{}"), ("{}_images", "{}_labels"))
"""What the arrays of a part are called; where there are no parts, `images` and `labels`."""
IMAGE_COLUMNS = ("image", "img")
"""Names of a table's column of pictures: in Parquet `{"bytes": ...}` or the bytes; or names of files."""


def array_splits(data: str) -> dict[str, str]:
    """By part the IDX files of a folder, or places such as `mnist.npz/train`; none without a `train`."""
    path = Path(data)
    if path.is_dir():
        found = [file for file in sorted(path.iterdir()) if IDX_NAME.fullmatch(file.name)]
        parts = {_idx_split(file): str(file) for file in found}
        if len(parts) < len(found):
            raise UserError(
                f"{data}: {', '.join(file.name for file in found)}: several of one part; keep one"
            )
    elif path.suffix.lower() == ".npz" and path.is_file():
        names = _array_names(path)
        parts = {
            part: f"{data}/{name}"
            for name, part in SPLIT_FOLDERS.items()
            for image, _ in NPZ_ARRAY_NAMES
            if image.format(name) in names
        }
    else:
        return {}
    return {part: parts[part] for part in ("train", "valid", "test") if part in parts and "train" in parts}


def has_many_images(data: str) -> bool:
    """Whether there are pictures in the file."""
    path = Path(data)
    if image_column(path):
        return True
    if path.suffix.lower() == ".npz" and path.is_file():
        return "images" in _array_names(path)
    return path.parent.suffix.lower() == ".npz" or bool(IDX_NAME.fullmatch(path.name))


def image_column(path: Path) -> str | None:
    """The column of a table with pictures, or in text with names of their files; None if there is none."""
    if path.suffix.lower() not in TABLES or not path.is_file():
        return None
    try:
        column = next((name for name in IMAGE_COLUMNS if name in column_names(path)), None)
        if column is None or path.suffix.lower() == ".parquet":
            return column
        rows = (found[column] for _, found in read_records(path, [column]) if isinstance(found, dict))
        first = next(rows, None)
    except UserError:
        return None  # whose reader says what is wrong
    return column if isinstance(first, str) and first.lower().endswith(IMAGE_SUFFIXES) else None


def read_images(data: str, label: str | None) -> Iterator[Record]:
    """Each picture: where it is, and `image` (levels of 8 bits, a file's bytes, or a file), and `label`.

    `label` is its column in a table; labels are left out if it is None. Errors: UserError for what concerns
    the whole file.
    """
    path = Path(data)
    if column := image_column(path):
        return _table(path, column, label)
    if IDX_NAME.fullmatch(path.name):
        images = _idx(path)
        return _array_rows(path, images, _idx(_labels_beside(path)) if label else None)
    part = "" if path.suffix.lower() == ".npz" else path.name
    return _npz(path.parent if part else path, part, label is not None)


def _array_rows(path: Path, images: NDArray[Any], labels: NDArray[Any] | None) -> Iterator[Record]:
    if labels is not None and not len(labels) == labels.size == len(images):
        raise UserError(f"{path}: {len(images):,} images, and labels {labels.shape}; give each one label")
    white = white_level([images])
    for number, image in enumerate(images):
        levels = to_uint8(image, white)
        fields: Fields = {"image": levels}
        if labels is not None:
            fields["label"] = labels.reshape(-1)[number].item()
        yield f"image {number + 1}", levels if isinstance(levels, str) else fields


def _idx(path: Path) -> NDArray[np.uint8]:
    """Bytes in as many dimensions as the header says (LeCun et al., the MNIST database)."""
    with open_file(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content = gzip.GzipFile(fileobj=file) if packed else file
        try:
            head = content.read(4)
            if len(head) < 4 or head[:3] != b"\0\0\x08" or head[3] not in (1, 3, 4):
                raise UserError(f"{path}: not IDX of bytes (it begins with {head.hex()}); get it anew")
            sides = content.read(4 * head[3])
            shape = struct.unpack(f">{len(sides) // 4}I", sides[: len(sides) // 4 * 4])
            _check_size(path, math.prod(shape))
            data = content.read(math.prod(shape))
        except (OSError, EOFError, OverflowError, MemoryError, zlib.error) as error:
            raise UserError(f"{path}: cut off or damaged: {error}; get it anew") from None
    if len(shape) < head[3] or len(data) < math.prod(shape):
        raise UserError(f"{path}: cut off; get the whole file")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _labels_beside(path: Path) -> Path:
    """The IDX file of the labels that belong to a file of images."""
    name = re.sub(r"images([-.])idx[34]", r"labels\1idx1", path.name).removesuffix(".gz")
    beside = [path.with_name(name + end) for end in ("", ".gz")]
    found = next((file for file in beside if file.is_file()), None)
    if found is None:
        raise UserError(f"{path}: no {name} or {name}.gz beside it; put the labels there")
    return found


def _idx_split(path: Path) -> str:
    return next((part for word, part in IDX_SPLITS.items() if word in path.name), "train")


def _array_names(path: Path) -> set[str]:
    """The names of a file's arrays; none if it is damaged, as its reader will say."""
    try:
        with zipfile.ZipFile(path) as arrays:
            return {name.removesuffix(".npy") for name in arrays.namelist()}
    except (zipfile.BadZipFile, OSError):
        return set()


def _check_size(path: Path, size: int) -> None:
    """UserError if more bytes are to come out of a packed file than can be meant."""
    packed = path.stat().st_size
    if is_decompression_bomb(packed, size):
        raise UserError(f"{path}: {packed:,} bytes that say they are {size:,} unpacked; get it anew")


def _npz(path: Path, split: str, labeled: bool) -> Iterator[Record]:
    """`images` and `labels`; those of a part are `x_train` and `y_train`, or `train_images` and so on."""
    names = [(image.format(split), label.format(split)) for image, label in NPZ_ARRAY_NAMES]
    known = _array_names(path)
    image, label = next((pair for pair in names if pair[0] in known), ("images", "labels"))
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as arrays:
        _check_size(path, sum(array.file_size for array in arrays.infolist()))
    with open_file(path) as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                images = np.atleast_1d(stored[image])
                labels = np.atleast_1d(stored[label]) if labeled else None
        except Exception as error:  # of numpy, zipfile and zlib, of many kinds
            raise UserError(
                f"{path}: no arrays {image} and {label} that can be read: {error}; save them with numpy.savez"
            ) from None
    yield from _array_rows(path, images, labels)


def _table(path: Path, column: str, label: str | None) -> Iterator[Record]:
    classes = _class_names(path, label)
    for place, found in read_records(path, [column, label] if label else [column]):
        yield (
            place,
            found if isinstance(found, str) else image_fields(path, found, column, label, classes),
        )


def image_fields(
    table: Path, row: Fields, column: str, label: str | None, classes: list[str]
) -> Fields | str:
    """As `image` a picture's bytes, or its file, named from the table's folder on, and the `label`, if its
    column is given; or why there are none."""
    held, number = row[column], row[label] if label else None
    content = held.get("bytes") if isinstance(held, dict) else held
    if isinstance(content, str) and content:
        content = table.parent / content
    elif not isinstance(content, bytes):
        return f"'{column}' holds no bytes of a picture, nor its file; save the pictures in the table"
    if classes and isinstance(number, int):
        if not 0 <= number < len(classes):
            return f"'{label}' is {number}, and there are {len(classes)} classes; mend the row"
        number = classes[number]
    return {"image": content} | ({"label": number} if label else {})


def _class_names(path: Path, label: str | None) -> list[str]:
    """The names of the classes, where Hugging Face's datasets has left them in the file."""
    if path.suffix.lower() != ".parquet":
        return []
    import pyarrow.parquet

    try:
        notes = pyarrow.parquet.read_schema(path).metadata or {}
        names = json.loads(notes[b"huggingface"])["info"]["features"][label]["names"]
        return [str(name) for name in names]
    except (KeyError, TypeError, ValueError):
        return []
