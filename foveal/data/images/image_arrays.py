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
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.files.data_part import SPLIT_FOLDERS, DataPart
from foveal.data.files.file_bytes import is_decompression_bomb
from foveal.data.files.tables import read_records
from foveal.data.files.utf8 import open_file
from foveal.data.images.image_decoding import IMAGE_SUFFIXES, to_uint8, white_level

IDX_NAME = re.compile(r"(?P<part>.*)images[-.]idx[34]-ubyte(\.gz)?")
IDX_SPLITS = {"train": "train", "t10k": "test", "test": "test", "valid": "valid"}
"""By a word in the name of an IDX file which part is in it."""
NPZ_ARRAY_NAMES = (("x_{}", "y_{}"), ("{}_images", "{}_labels"))
"""What the arrays of a split are called."""
UNSPLIT_IMAGES, UNSPLIT_LABELS = "images", "labels"
"""What they are called where there are no splits."""
IMAGE_COLUMNS = ("image", "img")
"""Names of a table's column of pictures: in Parquet `{"bytes": ...}` or the bytes; or names of files."""


def array_splits(part: DataPart) -> dict[SplitName, str]:
    """Return where each split is: the IDX files of a folder, or places such as `mnist.npz/train`.

    Without a `train` there are none.

    Raises: UserError: two files are of one split.
    """
    if part.is_disk_folder:
        found = [name for name in part.listing.files if IDX_NAME.fullmatch(name)]
        places = {_idx_split(name): str(part.listing.file(name)) for name in found}
        if len(places) < len(found):
            raise UserError(f"{part}: {', '.join(found)}: several of one part; keep one")
    elif part.is_file:
        places = {
            split: f"{part}/{name}"
            for name, split in SPLIT_FOLDERS.items()
            for image, _ in NPZ_ARRAY_NAMES
            if image.format(name) in part.arrays
        }
    else:
        return {}
    return {split: places[split] for split in SPLITS if split in places and "train" in places}


def has_many_images(part: DataPart) -> bool:
    """Return whether the part is a file that holds many images, or some arrays of one."""
    if image_column(part):
        return True
    if part.arrays_file == part.path and part.is_file:
        return UNSPLIT_IMAGES in part.arrays
    return part.arrays_file is not None or bool(IDX_NAME.fullmatch(part.path.name))


def image_column(part: DataPart) -> str | None:
    """Return the column of a table with images, or in text with names of their files; None without one."""
    if not part.is_table:
        return None
    column = next((name for name in IMAGE_COLUMNS if name in part.columns), None)
    if column is None or part.suffix == ".parquet":
        return column
    first = part.first_row.get(column)
    return column if isinstance(first, str) and first.lower().endswith(IMAGE_SUFFIXES) else None


def read_images(part: DataPart, label: str | None) -> Iterator[Record]:
    """Read each image: where it is, and `image` (levels of 8 bits, a file's bytes, or a file), and `label`.

    `label` is its column in a table. If `label` is None, labels are left out.

    Raises: UserError: the whole file can't be used.
    """
    if column := image_column(part):
        return _table(part.path, column, label)
    if part.arrays_file is not None:
        return _npz(part, label is not None)
    images = _idx(part.path)
    return _array_rows(part.path, images, _idx(_labels_beside(part.path)) if label else None)


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
                raise UserError(f"{path}: not IDX of bytes (it begins with {head.hex()}); get it again")
            sides = content.read(4 * head[3])
            shape = struct.unpack(f">{len(sides) // 4}I", sides[: len(sides) // 4 * 4])
            _check_size(path, math.prod(shape))
            data = content.read(math.prod(shape))
        except (OSError, EOFError, OverflowError, MemoryError, zlib.error) as error:
            raise UserError(f"{path}: cut off or damaged: {error}; get it again") from None
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


def _idx_split(name: str) -> SplitName:
    return next((split for word, split in IDX_SPLITS.items() if word in name), "train")


def _check_size(path: Path, size: int) -> None:
    """UserError if more bytes are to come out of a packed file than can be meant."""
    packed = path.stat().st_size
    if is_decompression_bomb(packed, size):
        raise UserError(f"{path}: {packed:,} bytes that say they are {size:,} unpacked; get it again")


def _npz(part: DataPart, labeled: bool) -> Iterator[Record]:
    """Read `images` and `labels`; of a split `x_train` and `y_train`, or `train_images` and so on."""
    path = part.arrays_file
    assert path is not None
    split = "" if path == part.path else part.path.name
    names = [(image.format(split), label.format(split)) for image, label in NPZ_ARRAY_NAMES]
    image, label = next((pair for pair in names if pair[0] in part.arrays), (UNSPLIT_IMAGES, UNSPLIT_LABELS))
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
