"""The pixels of rows' images. Each file is read once, and equal images are stored once."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from foveal.config import ImageConfig
from foveal.core.allocator import free_memory
from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow, usable_rows
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_files import load_image
from foveal.data.images.pixel_levels import Pixels

MEMORY_CHECK_BYTES, MIN_FREE_BYTES = 1 << 26, 1 << 29
"""Bytes of images between two checks of the free memory, and bytes that must be free."""


def load_row_images(
    rows: Iterable[Row | SkippedRow], config: ImageConfig, skipped: list[SkippedRow]
) -> Iterator[Row]:
    """Replace the field `image` of rows by `picture`, its pixels, and `content`, its hash.

    Rows whose image can't be read are added to `skipped`. A file that several rows name is read once, and
    equal images share one array, as long as one of the rows is kept.

    Raises: UserError: the images don't fit into memory.
    """
    errors, contents = dict[str, str](), dict[str, str]()
    kept = WeakValueDictionary[str, Pixels]()  # arrays that the reader of the rows has not freed
    total_bytes = checked_bytes = 0
    for row in usable_rows(rows, skipped):
        fields = dict(row.fields)
        file = _image_key(image := fields.pop("image"), row.location)
        pixels = kept.get(contents.get(file, ""))
        if pixels is None and file not in errors:
            decoded = load_image(image, config.size, config.channels)
            if isinstance(decoded, str):
                errors[file] = decoded
            else:
                contents[file] = decoded.content
                total_bytes += 0 if decoded.content in kept else decoded.pixels.nbytes
                pixels = kept.setdefault(decoded.content, decoded.pixels)
            if total_bytes >= checked_bytes + MEMORY_CHECK_BYTES:
                checked_bytes = total_bytes
                _check_memory(row.location, [*kept.values()], config.size)
        if pixels is None:
            skipped.append(SkippedRow(row.location, errors[file]))
        else:
            yield Row(row.location, {**fields, "picture": pixels, "content": contents[file]})


def _check_memory(location: str, kept: list[Pixels], size: int) -> None:
    free = free_memory()
    if free is not None and free < MIN_FREE_BYTES:
        gigabytes = sum(pixels.nbytes for pixels in kept) / 1e9
        raise UserError(
            f"{location}: memory is full after {len(kept):,} images, which take {gigabytes:.1f} GB; "
            f"lower data.image.size={size}, or give fewer images"
        )


def _image_key(image: AnyPath | bytes | NDArray[Any], location: str) -> str:
    """Return a key that is equal for rows with the same image. Every array has a different key."""
    if isinstance(image, bytes):
        return hashlib.sha256(image).hexdigest()
    return location if isinstance(image, np.ndarray) else str(image)
