"""What the cells of a column are, and their form in a Parquet table."""

import io
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from foveal.api.values.columns import LABEL, Columns
from foveal.core.errors import UserError
from foveal.data.images.pixel_levels import SCALE_HINT, UNKNOWN_WHITE, to_uint8, white_level

IMAGE_NAMES, SERIES_NAMES = ("image", "img", "images"), ("values", "series")
"""Names of columns of images and of series, the ones of tables first."""
PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16")
"""The modes of Pillow that a PNG keeps as they are."""
MAX_CHANNELS = 4
"""Channels of an image at most. An array with more columns may have its channels first."""


class CellType(NamedTuple):
    """A kind of cells: the name of their column in a table, if it is fixed, and their conversion."""

    column: str
    convert: Callable[[str, list[Any]], list[Any]]


def convert_columns(columns: Columns) -> Columns:
    """Return columns as a table has them: images as the bytes of PNG files, series as lists of steps, and
    texts, numbers and lists unchanged. NaN and missing cells are None.

    Raises: UserError: a cell is of a kind that is not read, or of another kind than the rest of its column.
    """
    converted: Columns = {}
    for name, cells in columns.items():
        _check_label(name, cells)
        cell_type = _cell_type(name, cells)
        target = cell_type.column or name or "text"
        if target in converted or (target != name and target in columns):
            raise UserError(f"{name or 'the first'} and {target}: two columns of {target}; leave one out")
        converted[target] = cell_type.convert(name or target, cells)
    return converted


def _check_label(name: str, cells: list[Any]) -> None:
    """Check that labels are no arrays.

    Raises: UserError: they are.
    """
    first: Any = next((cell for cell in cells if cell is not None), None)
    if name == LABEL and np.ndim(first) > 0:
        raise UserError(
            f"'{name}': an array {np.shape(first)} for each row; give one label a row (numpy.argmax(y, 1) if "
            "there is a column for each class)"
        )


def _cell_type(name: str, cells: list[Any]) -> CellType:
    first = next((cell for cell in cells if cell is not None), None)
    if type(first).__module__.startswith("PIL."):
        return CellType(IMAGE_NAMES[0], _encode_pictures)
    if isinstance(first, dict) and "bytes" in first:
        return CellType(IMAGE_NAMES[0], _keep)
    if isinstance(first, bytes):
        return CellType(IMAGE_NAMES[0], _wrap_bytes)
    array = getattr(first, "ndim", 0) > 0  # a number or text of NumPy or torch has no axis
    if not array and not _is_series(first):
        return CellType("", _keep_plain)
    first = np.asarray(first)
    shape, dtype = first.shape, first.dtype
    if len(shape) == 3 or name in IMAGE_NAMES:
        return CellType(IMAGE_NAMES[0], _encode_arrays)
    if len(shape) == 1 or name in SERIES_NAMES or not array:
        return CellType(SERIES_NAMES[0], _list_steps)
    if dtype == np.uint8:
        return CellType(IMAGE_NAMES[0], _encode_arrays)
    raise UserError(
        f"arrays of {dtype} {shape}: gray pictures, or series of {shape[0]:,} steps of {shape[1]:,} "
        f"channels? name the column: {{'image': ..., 'label': ...}} or {{'values': ..., 'label': ...}}"
    )


def _is_series(cell: Any) -> bool:
    """Return whether a cell is a list of numbers, or of equally many numbers a step."""
    if not isinstance(cell, list) or not cell:
        return False
    inner = cell[0] if isinstance(cell[0], list) and cell[0] else cell
    return all(isinstance(number, int | float) and not isinstance(number, bool) for number in inner)


def _keep(name: str, cells: list[Any]) -> list[Any]:
    return cells


def _keep_plain(name: str, cells: list[Any]) -> list[Any]:
    """Return texts, numbers, truth values and lists, with None for NaN.

    Raises: UserError: types are mixed, or a cell has another type.
    """
    plain: list[Any] = [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]
    plain = [cell.item() if getattr(cell, "ndim", 1) == 0 else cell for cell in plain]
    first = next(((row, cell) for row, cell in enumerate(plain) if cell is not None), None)
    for row, cell in enumerate(plain):
        if cell is None:
            continue
        if not isinstance(cell, str | int | float | list | tuple):
            raise UserError(
                f"'{name}', row {row}: {type(cell).__name__}; give texts, numbers, images or arrays"
            )
        if first and _type_name(cell) != _type_name(first[1]):
            raise UserError(
                f"'{name}': row {first[0]} is {_type_name(first[1])}, and row {row} {_type_name(cell)}; give "
                "one type a column"
            )
    return [[*cell] if isinstance(cell, tuple) else cell for cell in plain]


def _type_name(cell: Any) -> str:
    if isinstance(cell, str):
        return "a text"
    return "a list" if isinstance(cell, list | tuple) else "a number"


def _wrap_bytes(name: str, cells: list[Any]) -> list[Any]:
    return [None if cell is None else {"bytes": cell, "path": None} for cell in cells]


def _encode_pictures(name: str, cells: list[Any]) -> list[Any]:
    """Return pictures of Pillow as the bytes of PNG files."""
    return [_png(cell, f"'{name}', row {row}") for row, cell in enumerate(cells)]


def _png(picture: Any, place: str) -> Any:
    if picture is None:
        return None
    if not hasattr(picture, "save"):
        raise UserError(f"{place}: {type(picture).__name__} among pictures; give pictures alone")
    if picture.mode not in PNG_MODES:
        picture = picture.convert("RGB")
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return {"bytes": file.getvalue(), "path": None}


def _encode_arrays(name: str, cells: list[Any]) -> list[Any]:
    """Return arrays of pixels (H, W), (H, W, C) or (C, H, W) as the bytes of PNG files.

    Floats are from 0 to 1, or from 0 to 255, alike in all arrays.

    Raises: UserError: the scale of the values is not known, or an array has not the shape of an image.
    """
    from PIL import Image

    arrays = [None if cell is None else _channels_last(np.asarray(cell)) for cell in cells]
    present = [array[np.newaxis] for array in arrays if array is not None]
    white = white_level(present)
    if white == UNKNOWN_WHITE:
        raise UserError(f"'{name}': values neither from 0 to 1 nor from 0 to 255; {SCALE_HINT}")
    encoded: list[Any] = []
    for row, array in enumerate(arrays):
        place = f"'{name}', row {row}"
        if array is None:
            encoded.append(None)
            continue
        if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 2, 3, 4)):
            raise UserError(f"{place}: an array {array.shape} is no image (height, width, channels)")
        pixels = to_uint8(array, white)
        if isinstance(pixels, str):
            raise UserError(f"{place}: {pixels}")
        encoded.append(_png(Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels), place))
    return encoded


def _channels_last(array: Any) -> Any:
    if array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] > MAX_CHANNELS:
        return np.moveaxis(array, 0, 2)
    return array


def _list_steps(name: str, cells: list[Any]) -> list[Any]:
    """Return series (T,) or (T, C) as lists of steps, with NaN kept for the reader to skip."""
    steps = []
    for row, cell in enumerate(cells):
        try:
            array = None if cell is None else np.asarray(cell, np.float64)
        except (ValueError, TypeError):
            raise UserError(f"'{name}', row {row}: no series of numbers, equally many at each step") from None
        steps.append(None if array is None else array.reshape(len(array), -1).tolist() if array.ndim else [])
    return steps
