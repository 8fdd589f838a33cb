"""The images that rows name, as pixels: each file read once, each picture kept once."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import ImageConfig
from foveal.core.allocator import free_memory
from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_decoding import DecodedImage, Pixels
from foveal.data.images.image_files import load_image

MEMORY_CHECK_BYTES, MIN_FREE_BYTES = 1 << 26, 1 << 29
"""Bytes of pictures from one look at the free memory to the next, and that must be left."""


def load_row_images(
    rows: Iterable[Row | SkippedRow], config: ImageConfig, skipped: list[SkippedRow]
) -> Iterator[Row]:
    """With fields `picture`, and its `content`, for `image`; those that can't be read are put into the list.

    A file that several rows name is read once, and of equal pictures one is kept. Errors: UserError if they
    are more than memory holds.
    """
    files: dict[str, DecodedImage | str] = {}
    kept: dict[str, Pixels] = {}
    held = looked = 0
    for row in rows:
        if isinstance(row, SkippedRow):
            skipped.append(row)
            continue
        fields = dict(row.fields)
        file = _image_key(image := fields.pop("image"), row.location)
        if file not in files:
            found = load_image(image, config.size, config.channels)
            if isinstance(found, DecodedImage):
                held += 0 if found.content in kept else found.pixels.nbytes
                found = DecodedImage(kept.setdefault(found.content, found.pixels), found.content)
            files[file] = found
            if held >= looked + MEMORY_CHECK_BYTES:
                looked = held
                _check_memory(row.location, len(kept), held, config.size)
        read = files[file]
        if isinstance(read, str):
            skipped.append(SkippedRow(row.location, read))
        else:
            yield Row(row.location, {**fields, "picture": read.pixels, "content": read.content})


def _check_memory(location: str, count: int, held: int, size: int) -> None:
    left = free_memory()
    if left is not None and left < MIN_FREE_BYTES:
        raise UserError(
            f"{location}: with the {count:,} pictures up to it, which take {held / 1e9:.1f} GB, "
            f"memory is full; lower data.image.size={size}, or give fewer"
        )


def _image_key(image: AnyPath | bytes | NDArray[Any], location: str) -> str:
    """What names it; an array is that of its row alone."""
    if isinstance(image, bytes):
        return hashlib.sha256(image).hexdigest()
    return location if isinstance(image, np.ndarray) else str(image)
