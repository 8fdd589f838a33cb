"""The images that rows name, as pixels: each file read once, each picture kept once."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import ImageConfig
from foveal.data.picture_files import picture_of
from foveal.data.pictures import Picture, Pixels
from foveal.data.rows import Aside, Row
from foveal.data.text import File


def decoded(rows: Iterable[Row | Aside], config: ImageConfig, aside: list[Aside]) -> Iterator[Row]:
    """With fields `picture`, and its `content`, for `image`; those that can't be read are put into the list.

    A file that several rows name is read once, and of equal pictures one is kept.
    """
    files: dict[str, Picture | str] = {}
    kept: dict[str, Pixels] = {}
    for row in rows:
        if isinstance(row, Aside):
            aside.append(row)
            continue
        fields = dict(row.fields)
        file = _file(image := fields.pop("image"), row.place)
        if file not in files:
            found = picture_of(image, config.size, config.channels)
            if isinstance(found, Picture):
                found = Picture(kept.setdefault(found.content, found.pixels), found.content)
            files[file] = found
        read = files[file]
        if isinstance(read, str):
            aside.append(Aside(row.place, read))
        else:
            yield Row(row.place, {**fields, "picture": read.pixels, "content": read.content})


def _file(image: File | bytes | NDArray[Any], place: str) -> str:
    """What names it; an array is that of its row alone."""
    if isinstance(image, bytes):
        return hashlib.sha256(image).hexdigest()
    return place if isinstance(image, np.ndarray) else str(image)
