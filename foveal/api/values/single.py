"""A single value where rows are read: one image, or one series."""

from numbers import Real
from typing import Any

from foveal.api.values.reader import Reader
from foveal.core.errors import UserError

CHANNELS = (1, 3, 4)
"""Numbers of channels of an image."""


def as_rows(values: Any, reader: Reader) -> Any:
    """Return values, a single image or series as a list of it.

    Raises: UserError: an array can be one image with channels, or gray images.
    """
    if type(values).__module__.startswith("PIL."):
        return [values]
    is_series, is_image = reader.kind == "series", reader.kind == "image"
    if is_series and isinstance(values, list) and values and all(isinstance(each, Real) for each in values):
        return [values]
    if type(values).__module__.partition(".")[0] not in ("numpy", "torch") or not hasattr(values, "shape"):
        return values
    shape = tuple(values.shape)
    if is_series and (len(shape) == 1 or (len(shape) == 2 and shape[1] == reader.channels > 1)):
        return values[None]
    if is_image and (len(shape) == 2 or (len(shape) == 3 and shape[2] in CHANNELS)):
        return values[None]
    if is_image and len(shape) == 3 and shape[0] == reader.channels > 1:
        raise UserError(
            f"an array {shape}: one image of {shape[0]} channels, or as many gray images? give [image], or "
            "images[..., None]"
        )
    return values
