"""X of an image classifier."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.data.images.pixel_levels import SCALE_HINT, TOLERANCE, UNKNOWN_WHITE, to_uint8, white_level
from foveal.sklearn.errors import InputError, InputTypeError

NUMBERS = {"b": "", "u": "integers", "i": "integers", "f": "floats"}
"""The numbers of arrays by the kind of their type."""
EIGHT_BITS = {"": 255}
"""The value of white in arrays of 8 bits, whose numbers need no name."""


def read_images(X: Any) -> list[Any]:
    """Return pictures of Pillow as they are, and other images as arrays (H, W), (H, W, C) or (C, H, W).

    Raises: InputError: X is no list or array of images, or a cell is no image.
    """
    shape = tuple(getattr(X, "shape", (0,)))
    if len(shape) not in (1, 3, 4):
        raise InputError(
            f"X is {len(shape)}-D {shape}: give images (N, height, width) or (N, height, width, channels), "
            "as by X.reshape(-1, height, width)"
        )
    try:
        cells = [*_array(X)]
    except TypeError:
        raise InputTypeError(f"X is {type(X).__name__}: give a list or an array of images") from None
    return [cell if hasattr(cell, "save") else _pixels(cell, row) for row, cell in enumerate(cells)]


def white_levels(images: list[Any], known: Mapping[str, int]) -> dict[str, int]:
    """Return which value is white in the arrays of integers, and in those of floats, where it is not known.

    Raises: InputError: the pixels are neither from 0 to 1 nor from 0 to 255.
    """
    levels = dict(known)
    for numbers in {*map(_numbers, images)} - levels.keys():
        levels[numbers] = white_level(image[np.newaxis] for image in images if _numbers(image) == numbers)
        if levels[numbers] == UNKNOWN_WHITE:
            raise InputError(f"X has pixels neither from 0 to 1 nor from 0 to 255; {SCALE_HINT}")
    return levels


def with_8_bits(images: list[Any], levels: Mapping[str, int]) -> list[Any]:
    """Return the images with arrays of 8 bits. `levels` has the value of white by the numbers of an array.

    Raises: InputError: pixels are out of range.
    """
    return [_with_8_bits(image, levels[_numbers(image)], row) for row, image in enumerate(images)]


def _with_8_bits(image: Any, white: int, row: int) -> Any:
    if not isinstance(image, np.ndarray):
        return image
    if image.size and image.max() > white + TOLERANCE:
        raise InputError(
            f"X, row {row}: pixels up to {image.max():g}, but in fit {white} is white; scale all alike"
        )
    pixels = to_uint8(image, white)
    if isinstance(pixels, str):
        raise InputError(f"X, row {row}: {pixels}")
    return pixels


def _numbers(image: Any) -> str:
    """Return the numbers of an array whose white is to be known; "" for 8 bits and pictures of Pillow."""
    return NUMBERS[image.dtype.kind] if isinstance(image, np.ndarray) and image.dtype != np.uint8 else ""


def _pixels(cell: Any, row: int) -> NDArray[Any]:
    """Return a cell as an array of pixels.

    Raises: InputError: the cell is no image.
    """
    kind = type(cell).__name__
    try:
        image = np.asarray(_array(cell))
    except ValueError:
        raise InputError(f"X, row {row}: {kind} of rows of different lengths, no image") from None
    if image.ndim not in (2, 3) or image.dtype.kind not in NUMBERS:
        what = f"an array {image.shape} of {image.dtype}" if hasattr(cell, "ndim") else kind
        raise InputError(
            f"X, row {row}: {what}, no image; give a picture of Pillow or an array (height, width) or "
            "(height, width, channels)"
        )
    return image


def _array(values: Any) -> Any:
    """Return a tensor as an array, and anything else unchanged."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values
