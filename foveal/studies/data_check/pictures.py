"""Images of one color, and images that look alike."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from PIL import Image

from foveal.core.terminal_text import counted
from foveal.data.images.pixel_levels import Pixels
from foveal.studies.data_check.checked_data import CheckedData, place
from foveal.studies.data_check.compared_rows import choose_rows, limit_findings
from foveal.studies.data_check.finding import MAX_ROWS, Finding, findings_on

SIDE = 8
"""Images are compared at this width and height."""
MIN_CORRELATION = 0.98
"""The correlation of two thumbnails from which on images look alike."""
MIN_CONTRAST = 4.0
"""The least standard deviation of a thumbnail that is compared, of 255: flat ones all look alike."""
MAX_IMAGES = 100_000
"""Images that are compared with one another. The time grows with their square."""
BLOCK = 512
"""Images that are compared with all before them at a time."""
SHOWN_PAIRS = 12
CHECK = "images that look alike"


def check_pictures(data: CheckedData) -> Iterator[Finding]:
    """Yield images of one color, and images that look like another but are not equal to it."""
    if data.input_field != "picture":
        return
    usable = np.ones(data.count, np.bool)
    chosen = choose_rows(data, usable, MAX_IMAGES)
    numbers = {*chosen.tolist()}
    flat, thumbnails = list[str](), list[NDArray[np.float32]]()
    for index, (split, row) in enumerate(data.rows()):
        picture = row.fields["picture"]
        if (picture == picture[:1, :1]).all():
            flat.append(place(split, row))
        if index in numbers:
            thumbnails.append(_thumbnail(picture))
    yield from findings_on("images", "problem", flat, "{} with an image of one color", "leave them out")
    across, within = list[tuple[int, int]](), list[tuple[int, int]]()
    splits = data.splits[chosen]
    for one, other in _alike(np.stack(thumbnails), data.keys[chosen], int((splits == 0).sum())):
        pairs = within if splits[one] == splits[other] else across
        pairs.append((int(chosen[one]), int(chosen[other])))
    if across:
        yield Finding(
            CHECK,
            "problem",
            f"{counted(len(across), 'held-out image')} like one of another split, so scores are too high",
            "leave them out of one of both",
            len(across),
            _lines(data, across),
            _pictures(data, across),
        )
    if within:
        yield Finding(
            CHECK,
            "note",
            f"{counted(len(within), 'image')} like another of the same split",
            "keep one of each, if both are the same picture",
            len(within),
            _lines(data, within),
            _pictures(data, within),
        )
    yield from limit_findings(data, CHECK, "image", usable, chosen)


def _thumbnail(picture: NDArray[Any]) -> NDArray[np.float32]:
    """Return a picture (H, W, C) as the means of areas less the mean of each channel, (SIDE * SIDE * 3,)."""
    pixels = np.broadcast_to(picture, (*picture.shape[:2], 3)).astype(np.uint8)
    small = Image.fromarray(np.ascontiguousarray(pixels)).resize((SIDE, SIDE), Image.Resampling.BOX)
    areas = np.asarray(small, np.float32)
    return (areas - areas.mean((0, 1))).reshape(-1)


def _alike(thumbnails: Float[np.ndarray, "N P"], keys: NDArray[Any], train: int) -> Iterator[tuple[int, int]]:
    """Yield each image that looks like an earlier one of another key, with that which is most alike.

    Of held-out images, one of the first `train` images comes before all others.
    """
    contrast = thumbnails.std(1, keepdims=True)
    unit = thumbnails / np.maximum(contrast, MIN_CONTRAST) / np.sqrt(thumbnails.shape[1])
    unit[contrast[:, 0] < MIN_CONTRAST] = 0
    for start in range(0, len(unit), BLOCK):
        stop = min(start + BLOCK, len(unit))
        correlation = unit[start:stop] @ unit[:stop].T
        own = np.arange(start, stop)[:, None]
        correlation[(own <= np.arange(stop)) | (keys[start:stop, None] == keys[:stop])] = 0
        in_train = correlation[:, :train].max(1) > MIN_CORRELATION
        nearest = np.where(in_train, correlation[:, :train].argmax(1), correlation.argmax(1))
        for row in np.flatnonzero(correlation.max(1) > MIN_CORRELATION).tolist():
            yield start + row, int(nearest[row])


def _lines(data: CheckedData, pairs: list[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(" ~ ".join(data.locations(np.array(pair), 2)) for pair in pairs[:MAX_ROWS])


def _pictures(data: CheckedData, pairs: list[tuple[int, int]]) -> tuple[tuple[str, Pixels], ...]:
    shown = []
    for index in (index for pair in pairs[:SHOWN_PAIRS] for index in pair):
        split, row = data.row(index)
        picture = row.fields["picture"]
        pixels = np.array(np.broadcast_to(picture, (*picture.shape[:2], 3)))
        shown.append((f"{PurePath(row.location).name} ({split})", pixels))
    return tuple(shown)
