"""What the cells of a column are, and their form in a Parquet table."""

import io
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from foveal.api.values.columns import LABEL, SOURCE, Columns
from foveal.api.values.reader import IMAGE_NAMES, SERIES_NAMES, WORD_NAMES, Reader
from foveal.core.errors import UserError
from foveal.data.images.pixel_levels import SCALE_HINT, UNKNOWN_WHITE, to_uint8, white_level
from foveal.ui.console import log

PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
"""The modes of Pillow that a PNG keeps as they are."""
DEEP_MODES = ("I", "I;16", "I;16L", "I;16B", "I;16N", "F")
"""The modes of Pillow with more than 8 bits, which are read as arrays."""
MIN_STEPS = 8
"""Steps of series without a name at least. Rows of fewer numbers are rather features."""
MAX_CHANNELS = 4
"""Channels of an image at most. An array with more columns may have its channels first."""


class CellType(NamedTuple):
    """A kind of cells: the name of their column in a table, if it is fixed, and their conversion."""

    column: str
    convert: Callable[[str, list[Any]], list[Any]]


def convert_columns(columns: Columns, reader: Reader) -> Columns:
    """Return columns as a table has them: images as the bytes of PNG files, series as lists of steps, and
    texts, numbers and lists unchanged. NaN and missing cells are None.

    Cells of other kinds become texts in a column that is not read.

    Raises: UserError: a cell of a column that is read is of a kind that is not, or of another kind than the
        rest of its column.
    """
    converted: Columns = {}
    unread: list[str] = []
    for name, cells in columns.items():
        _check_label(name, cells, reader)
        cell_type = _cell_type(name, cells, columns, reader)
        target = cell_type.column or name or reader.source
        if target in converted or (target != name and target in columns):
            if name not in (SOURCE, *IMAGE_NAMES, *SERIES_NAMES):
                log(f"'{name}' is left out, since the images or series of another column are read")
                continue
            raise UserError(f"{name or 'the first'} and {target}: two columns of {target}; leave one out")
        try:
            converted[target] = cell_type.convert(name or target, cells)
        except UserError:
            if target in reader.needed:
                raise
            unread.append(f"'{name}'")
            converted[target] = as_text(cells)
    if unread:
        log(f"{', '.join(unread)}: not read, and of no type of tables, so stored as text")
    return converted


def as_text(cells: list[Any]) -> list[str | None]:
    """Return cells of any types as texts."""
    return [None if cell is None else str(cell) for cell in cells]


def _check_label(name: str, cells: list[Any], reader: Reader) -> None:
    """Check that labels are no arrays.

    Raises: UserError: they are.
    """
    first: Any = next((cell for cell in cells if cell is not None), None)
    if name and name in (LABEL, reader.label, reader.target) and np.ndim(first) > 0:
        shape = np.shape(first)
        way = "y[:, 0]" if shape == (1,) else "numpy.argmax(y, 1) if there is a column for each class"
        raise UserError(f"'{name}': an array {shape} for each row; give one label a row ({way})")


def _cell_type(name: str, cells: list[Any], columns: Columns, reader: Reader) -> CellType:
    """Return the type of the cells of a column.

    Raises: UserError: arrays can be images or series, and neither the column nor the reader says which.
    """
    first = next((cell for cell in cells if cell is not None), None)
    if type(first).__module__.startswith("PIL."):
        return CellType(IMAGE_NAMES[0], _encode_pictures)
    if isinstance(first, dict) and "bytes" in first:
        return CellType(IMAGE_NAMES[0], _keep)
    if isinstance(first, bytes) and (name in (SOURCE, *IMAGE_NAMES) or reader.source not in columns):
        return CellType(IMAGE_NAMES[0], _wrap_bytes)
    array = getattr(first, "ndim", 0) > 0  # a number or text of NumPy or torch has no axis
    if (not array and not _is_series(first)) or _is_beside_source(name, columns, reader):
        return CellType("", _keep_plain)
    first = np.asarray(first)
    shape, dtype = first.shape, first.dtype
    if name in IMAGE_NAMES or (name not in SERIES_NAMES and reader.kind == "image"):
        return CellType(IMAGE_NAMES[0], _encode_arrays)
    if name in SERIES_NAMES or reader.kind == "series" or len(shape) == 1 or not array:
        if name == SOURCE and not reader.kind and len(shape) == 1:
            _check_are_steps(len(cells), shape[0])
        return CellType(SERIES_NAMES[0], _list_steps)
    if len(shape) == 3 or dtype == np.uint8:
        return CellType(IMAGE_NAMES[0], _encode_arrays)
    raise UserError(
        f"arrays of {dtype} {shape}: gray pictures, or series of {shape[0]:,} steps of {shape[1]:,} "
        f"channels? name the column: {{'image': ..., 'label': ...}} or {{'values': ..., 'label': ...}}"
    )


def _check_are_steps(rows: int, steps: int) -> None:
    """Check that the rows of an array without a name are series, and no features of things.

    Raises: UserError: there are few columns.
    """
    shape = f"an array ({rows:,}, {steps:,})"
    if steps < MIN_STEPS:
        raise UserError(
            f"{shape}: a table of {steps} features is nothing that is learned here (scikit-learn does that); "
            f"if these are series of {steps} steps, give x[:, :, None]"
        )
    log(f"{shape}: read as series of {steps:,} steps; a table of features is nothing that is learned here")


def _is_beside_source(name: str, columns: Columns, reader: Reader) -> bool:
    """Return whether a column stands beside the sources in another column, or has words or tags, so that its
    arrays are no sources."""
    sources = {SOURCE, *IMAGE_NAMES, *SERIES_NAMES}
    if name in sources:
        return False
    return name in WORD_NAMES or reader.kind == "text" or not sources.isdisjoint(columns)


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
    plain = [cell.tolist() if hasattr(cell, "ndim") else cell for cell in plain]
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
    cells = [None if 0 in getattr(cell, "size", ()) else cell for cell in cells]
    deep = [np.asarray(cell) if getattr(cell, "mode", "") in DEEP_MODES else None for cell in cells]
    arrays = _encode_arrays(name, deep) if any(array is not None for array in deep) else deep
    return [
        _png(cell, f"'{name}', row {row}") if deep[row] is None else arrays[row]
        for row, cell in enumerate(cells)
    ]


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
    present = [array[np.newaxis] for array in arrays if array is not None and array.size]
    white = white_level(present)
    if white == UNKNOWN_WHITE:
        raise UserError(f"'{name}': values neither from 0 to 1 nor from 0 to 255; {SCALE_HINT}")
    encoded: list[Any] = []
    unreadable = [row for row, array in enumerate(arrays) if array is not None and not _is_finite(array)]
    if unreadable:
        count = "" if len(unreadable) == 1 else f" and {len(unreadable) - 1:,} others"
        log(f"'{name}', row {unreadable[0]}{count}: no pixels, or values NaN or infinite, so skipped")
    for row, array in enumerate(arrays):
        place = f"'{name}', row {row}"
        if array is None or row in unreadable:
            encoded.append(None)  # the reader skips the row
            continue
        if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 2, 3, 4)):
            raise UserError(f"{place}: an array {array.shape} is no image (height, width, channels)")
        pixels = to_uint8(array, white)
        if isinstance(pixels, str):
            raise UserError(f"{place}: {pixels}")
        encoded.append(_png(Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels), place))
    return encoded


def _is_finite(array: Any) -> bool:
    return array.size > 0 and (array.dtype.kind != "f" or bool(np.isfinite(array).all()))


def _channels_last(array: Any) -> Any:
    if array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] > MAX_CHANNELS:
        return np.moveaxis(array, 0, 2)
    return array


def _list_steps(name: str, cells: list[Any]) -> list[Any]:
    """Return series (T,) or (T, C) as lists of steps, with NaN kept for the reader to skip."""
    steps: list[Any] = []
    for row, cell in enumerate(cells):
        if cell is None:
            steps.append(None)
            continue
        array = np.asarray(cell)
        try:
            if (
                array.ndim > 2 or array.dtype.kind in "cmM"
            ):  # of complex numbers and dates a part would be lost
                raise ValueError
            array = array.astype(np.float64)
        except (ValueError, TypeError):
            raise UserError(f"'{name}', row {row}: no series of numbers, equally many at each step") from None
        steps.append(array.reshape(len(array), -1).tolist() if array.ndim and array.size else [])
    return steps
