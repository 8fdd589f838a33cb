"""Files of many labeled images: IDX (the format of MNIST), NumPy arrays, and tables."""

import gzip
import math
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.core.parse_json import parse_json
from foveal.data.core.fields import Fields, Record
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.files.npz import LABEL_NAMES, SOURCE_NAMES, first_name, read_arrays
from foveal.data.files.part_rows import shard_name
from foveal.data.files.split_names import SPLIT_WORDS
from foveal.data.files.tables import read_records
from foveal.data.files.unpacked_size import check_unpacked_size
from foveal.data.files.utf8 import open_file
from foveal.data.images.image_decoding import IMAGE_SUFFIXES
from foveal.data.images.pixel_levels import check_white_level, to_uint8, white_level

IDX_NAME = re.compile(r"(?P<part>.*)images[-.]idx[34]-ubyte(\.gz)?")
IDX_SPLITS = {"train": "train", "t10k": "test", "test": "test", "valid": "valid"}
"""Maps words in the names of IDX files to splits."""
NPZ_ARRAY_NAMES = (("x_{}", "y_{}"), ("X_{}", "y_{}"), ("{}_images", "{}_labels"))
"""Names of the arrays of a split."""
UNSPLIT_IMAGES, UNSPLIT_LABELS = "images", "labels"
"""Names of the arrays without splits."""
PICTURE_AXES, MIN_SIDE = (3, 4), 4
"""Numbers of axes of arrays of pictures, gray or with channels, and pixels of the shortest side."""
IMAGE_COLUMNS = ("image", "img")
"""Names of a table's column of images: in Parquet `{"bytes": ...}` or the bytes; otherwise names of files."""


def array_splits(part: DataPart) -> dict[SplitName, str]:
    """Return the location of each split: an IDX file of a folder, or a path such as `mnist.npz/train`.

    There are no splits without `train`.

    Raises: UserError: two files are for the same split, or an array has no shape of pictures.
    """
    if part.is_disk_folder:
        names = [name for name in part.listing.files if IDX_NAME.fullmatch(name)]
        locations = {_idx_split(name): str(part.listing.file(name)) for name in names}
        if len(locations) < len(names):
            raise UserError(f"{part}: {', '.join(names)}: several files for the same split; keep one")
    elif part.is_file:
        arrays = {
            name: image.format(name)
            for name in SPLIT_WORDS
            for image, _ in NPZ_ARRAY_NAMES
            if image.format(name) in part.arrays
        }
        for array in arrays.values():
            _check_are_pictures(part, array)
        locations = {SPLIT_WORDS[name]: f"{part}/{name}" for name in arrays}
    else:
        return {}
    return {split: locations[split] for split in SPLITS if split in locations and "train" in locations}


def _check_are_pictures(part: DataPart, array: str) -> None:
    shape = part.arrays[array]
    if not shape:
        raise UserError(f"{part}: {array} is damaged, or a single number; save it again with numpy.savez")
    if len(shape) not in PICTURE_AXES or min(shape[1:3]) < MIN_SIDE:
        raise UserError(
            f"{part}: {array} {shape} has not the shape of pictures (pictures, height, width); write the "
            "splits of series to files of their own, train.npz and test.npz, each with the arrays x (series, "
            "steps, channels) and y"
        )


def has_many_images(part: DataPart) -> bool:
    """Return whether the part is a file of many images, or arrays of such a file."""
    if image_column(part):
        return True
    if part.arrays_file == part.path and part.is_file:
        return _unsplit_images(part) is not None
    return part.arrays_file is not None or bool(IDX_NAME.fullmatch(part.path.name))


def image_column(part: DataPart) -> str | None:
    """Return the column of a table with images or names of image files; None if there is no such column."""
    if not part.is_table:
        return None
    column = next((name for name in IMAGE_COLUMNS if name in part.columns), None)
    if column is None or part.suffix == ".parquet":
        return column
    first = part.first_row.get(column)
    return column if isinstance(first, str) and first.lower().endswith(IMAGE_SUFFIXES) else None


def read_images(part: DataPart, label: str | None) -> Iterator[Record]:
    """Read each image: its location, `image` (8-bit pixel values, the bytes of a file, or a file), and
    `label`.

    `label` is the column in a table. If `label` is None, labels are not read.

    Raises: UserError: the whole file can't be used.
    """
    if column := image_column(part):
        return _table(part, column, label)
    if part.arrays_file is not None:
        return _npz(part, label is not None)
    images = _idx(part.path)
    return _array_rows(part.path, images, _idx(_labels_file(part.path)) if label else None)


def _array_rows(path: Path, images: NDArray[Any], labels: NDArray[Any] | None) -> Iterator[Record]:
    if labels is not None and not len(labels) == labels.size == len(images):
        raise UserError(
            f"{path}: {len(images):,} images, and labels {labels.shape}; give one label per image"
        )
    white = white_level([images])
    check_white_level(path, images, white)
    for index, image in enumerate(images):
        levels = to_uint8(image, white)
        fields: Fields = {"image": levels}
        if labels is not None:
            fields["label"] = labels.reshape(-1)[index].item()
        yield f"image {index + 1}", levels if isinstance(levels, str) else fields


def _idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file of bytes, with the dimensions of its header (LeCun et al., the MNIST database).

    Raises: UserError: the file is damaged or of another format.
    """
    with open_file(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content = gzip.GzipFile(fileobj=file) if packed else file
        try:
            header = content.read(4)
            if len(header) < 4 or header[:3] != b"\0\0\x08" or header[3] not in (1, 3, 4):
                raise UserError(
                    f"{path}: not IDX of bytes (it begins with {header.hex()}); get the file again"
                )
            sides = content.read(4 * header[3])
            shape = struct.unpack(f">{len(sides) // 4}I", sides[: len(sides) // 4 * 4])
            check_unpacked_size(path, math.prod(shape))
            data = content.read(math.prod(shape))
        except (OSError, EOFError, OverflowError, MemoryError, zlib.error) as error:
            raise UserError(f"{path}: cut off or damaged: {error}; get the file again") from None
    if len(shape) < header[3] or len(data) < math.prod(shape):
        raise UserError(f"{path}: cut off; get the whole file")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _labels_file(path: Path) -> Path:
    """Return the IDX file with the labels of a file of images.

    Raises: UserError: there is no such file.
    """
    name = re.sub(r"images([-.])idx[34]", r"labels\1idx1", path.name).removesuffix(".gz")
    candidates = [path.with_name(name + suffix) for suffix in ("", ".gz")]
    file = next((file for file in candidates if file.is_file()), None)
    if file is None:
        raise UserError(f"{path}: no {name} or {name}.gz beside it; put the labels there")
    return file


def _idx_split(name: str) -> SplitName:
    return next((split for word, split in IDX_SPLITS.items() if word in name), "train")


def _unsplit_images(part: DataPart) -> str | None:
    """Return the name of the array of pictures of a file without splits: `images`, or another array of
    sources with the four axes of pictures with channels. None if there is no such array."""
    colored = [name for name in SOURCE_NAMES if len(part.arrays.get(name, ())) == max(PICTURE_AXES)]
    return first_name((UNSPLIT_IMAGES, *colored), part.arrays)


def _npz(part: DataPart, labeled: bool) -> Iterator[Record]:
    """Read the arrays of `_unsplit_images` and their labels, or for a split `x_train` and `y_train`,
    `train_images` and `train_labels`."""
    path = part.arrays_file
    assert path is not None
    split = "" if path == part.path else part.path.name
    names = [(image.format(split), label.format(split)) for image, label in NPZ_ARRAY_NAMES]
    unsplit = _unsplit_images(part) or UNSPLIT_IMAGES, first_name(LABEL_NAMES, part.arrays) or UNSPLIT_LABELS
    image, label = next((pair for pair in names if pair[0] in part.arrays), unsplit)
    arrays = read_arrays(path, (image, label) if labeled else (image,))
    yield from _array_rows(path, arrays[image], arrays.get(label) if labeled else None)


def _table(part: DataPart, column: str, label: str | None) -> Iterator[Record]:
    classes = {file: _class_names(file, label) for file in part.files}
    for file, location, record in read_shards(part, [column, label] if label else [column]):
        if not isinstance(record, str):
            record = image_fields(file, record, column, label, classes[file])
        yield location, record


def read_shards(part: DataPart, columns: Sequence[str]) -> Iterator[tuple[Path, str, Fields | str]]:
    """Yield the file, the location and the fields of each row of a table.

    Locations name the shards, except the first.
    """
    for file in part.files:
        shard = "" if file == part.path else f"{shard_name(part.path, file)}, "
        for location, record in read_records(file, columns, encoding=part.encoding):
            yield file, f"{shard}{location}", record


def image_fields(
    table: Path, row: Fields, column: str, label: str | None, classes: list[str]
) -> Fields | str:
    """Return `image` (the bytes of an image, or a file relative to the table's folder) and `label`, if there
    is a column `label`; or the reason why the row can't be used."""
    value, number = row[column], row[label] if label else None
    content = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(content, str) and content:
        content = table.parent / content
    elif not isinstance(content, bytes):
        return f"'{column}' has neither the bytes nor the file of an image; save the images in the table"
    if classes and isinstance(number, int):
        if not 0 <= number < len(classes):
            return f"'{label}' is {number}, and there are {len(classes)} classes; fix the row"
        number = classes[number]
    return {"image": content} | ({"label": number} if label else {})


def _class_names(path: Path, label: str | None) -> list[str]:
    """Return the class names that Hugging Face's datasets library has stored in the file. Empty if there are
    none."""
    if path.suffix.lower() != ".parquet":
        return []
    require("pyarrow", f"{path}: a Parquet table")
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
        names = parse_json(metadata[b"huggingface"])["info"]["features"][label]["names"]
        return [str(name) for name in names]
    except (KeyError, TypeError, ValueError):
        return []
