"""Pixel values: which value is white, and any values as 8 bits."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError

Pixels = NDArray[np.uint8]
"""(H, W, C)"""
WHITE_LEVELS = (1, 255, 65_535)
"""Possible levels of white: any of these for floats, one of the last two for integers."""
UNKNOWN_WHITE, MIN_BYTE_VALUE = 0, 16
"""No level of white, and the highest value of floats from which on 255 is white. Floats between that and 1
are neither 0 to 1 nor 0 to 255."""
SCALE_HINT = "scale all images alike to 0 to 1 (from -1 to 1: (x + 1) / 2), or save it with 8 or 16 bits"
TOLERANCE = 0.01
"""How far values of floats may be below black or above white, by rounding of resized images."""


def white_level(sets: Iterable[NDArray[Any]]) -> int:
    """Return the pixel value of white in `sets` of images (N, H, W) or (N, H, W, C) in the same format.

    White is the smallest of WHITE_LEVELS that no pixel exceeds, or UNKNOWN_WHITE. Images that can't be used
    are ignored.
    """
    highest, first = 0.0, 0
    for images in sets:
        kind, axes = images.dtype.kind, tuple(range(1, images.ndim))
        if kind in "iuf" and images.itemsize > 1 and images.size:
            low, high = images.min(axes), images.max(axes)
            usable = (low >= -TOLERANCE) & (high <= WHITE_LEVELS[-1])
            highest = max(highest, float(high[usable].max(initial=0)))
        first = 0 if kind == "f" else 1
    if first == 0 and WHITE_LEVELS[0] + TOLERANCE < highest < MIN_BYTE_VALUE:
        return UNKNOWN_WHITE
    return next(white for white in WHITE_LEVELS[first:] if highest <= white + (0 if first else TOLERANCE))


def to_uint8(values: NDArray[Any], white: int | None = None) -> Pixels | str:
    """Convert pixel values to 8 bits, where `white` is the value of white, or return the reason why they
    can't be converted.

    Without `white`, the `white_level` of this image is used. A dark image may then be mistaken for an image
    with fewer bits.
    """
    if values.dtype == np.uint8 or not values.size:
        return values.astype(np.uint8, copy=False)
    if values.dtype == np.bool_:
        return values * np.uint8(255)
    if values.dtype.kind not in "iuf":
        return f"values of {values.dtype}; save it with 8 bits"
    low, high = float(values.min()), float(values.max())
    tolerance = TOLERANCE if values.dtype.kind == "f" else 0
    if not np.isfinite((low, high)).all():
        return f"its values go from {low:g} to {high:g}; save it with 8 or 16 bits"
    if not -tolerance <= low <= high <= WHITE_LEVELS[-1]:
        return f"its values go from {low:g} to {high:g}; {SCALE_HINT}"
    white = white_level([values[None]]) if white is None else white
    if white == UNKNOWN_WHITE:
        return f"its values go from {low:g} to {high:g}, neither 0 to 1 nor 0 to 255; {SCALE_HINT}"
    if values.dtype.kind in "iu":
        return (values >> 8 if white > 255 else values).astype(np.uint8)
    return np.rint(values * np.float32(255 / white)).clip(0, 255).astype(np.uint8)


def check_white_level(name: object, images: NDArray[Any], white: int) -> None:
    """Check that white is known.

    Raises: UserError: it is not, for the values of the images in the file `name`.
    """
    if white == UNKNOWN_WHITE:
        raise UserError(
            f"{name}: the values of its images go to {float(np.nanmax(images)):g}, neither 0 to 1 nor 0 to "
            f"255; {SCALE_HINT}"
        )
