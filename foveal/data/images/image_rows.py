"""The images that rows name, as pixels: each file read once, each picture kept once."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import ImageConfig
from foveal.core.allocator import free_memory
from foveal.core.errors import UserError
from foveal.data.core.rows import Aside, Row
from foveal.data.files.utf8 import File
from foveal.data.images.image_decoding import Picture, Pixels
from foveal.data.images.image_files import picture_of

LOOK, SPARE = 1 << 26, 1 << 29
"""Bytes of pictures from one look at the free memory to the next, and that must be left."""


def decoded(rows: Iterable[Row | Aside], config: ImageConfig, aside: list[Aside]) -> Iterator[Row]:
    """With fields `picture`, and its `content`, for `image`; those that can't be read are put into the list.

    A file that several rows name is read once, and of equal pictures one is kept. Errors: UserError if they
    are more than memory holds.
    """
    files: dict[str, Picture | str] = {}
    kept: dict[str, Pixels] = {}
    held = looked = 0
    for row in rows:
        if isinstance(row, Aside):
            aside.append(row)
            continue
        fields = dict(row.fields)
        file = _file(image := fields.pop("image"), row.place)
        if file not in files:
            found = picture_of(image, config.size, config.channels)
            if isinstance(found, Picture):
                held += 0 if found.content in kept else found.pixels.nbytes
                found = Picture(kept.setdefault(found.content, found.pixels), found.content)
            files[file] = found
            if held >= looked + LOOK:
                looked = held
                _check_room(row.place, len(kept), held, config.size)
        read = files[file]
        if isinstance(read, str):
            aside.append(Aside(row.place, read))
        else:
            yield Row(row.place, {**fields, "picture": read.pixels, "content": read.content})


def _check_room(place: str, count: int, held: int, size: int) -> None:
    left = free_memory()
    if left is not None and left < SPARE:
        raise UserError(
            f"{place}: with the {count:,} pictures up to it, which take {held / 1e9:.1f} GB, memory is full; "
            f"lower data.image.size={size}, or give fewer"
        )


def _file(image: File | bytes | NDArray[Any], place: str) -> str:
    """What names it; an array is that of its row alone."""
    if isinstance(image, bytes):
        return hashlib.sha256(image).hexdigest()
    return place if isinstance(image, np.ndarray) else str(image)
