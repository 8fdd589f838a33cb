"""Arrays as bytes for the browser: whole, or as an overview with tiles that are sent on demand."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.inspection.page.encoded import Blob

Reference = dict[str, Any]
"""The shape and code of an array, and where its bytes are: `at` and `size` in the bundle, or a `blob`."""
WHOLE_CELLS = 250_000
"""Cells of the largest array that is sent whole, in float32."""
TILE, OVERVIEW = 512, 512
"""Rows and columns of a tile, and of an overview at most."""
THUMBNAIL = 64
"""Rows and columns of a map of a grid in its overview, at most."""
LEVELS, NOTHING = 254, 255
"""Square-root codes: a share is (code / 254)², NaN is 255. The error is at most 1/254."""
ALIGNMENT = 8


class Pooled(NamedTuple):
    """An array in which each cell stands for `size` x `size` cells."""

    values: NDArray[Any]
    size: int


class Bundle:
    """The binary parts of an encoded payload: `body` goes with the header, blobs on demand."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.blobs: list[Blob] = []

    def add(self, content: bytes) -> dict[str, int]:
        """Append bytes to the body. Return their place."""
        self.body += bytes(-len(self.body) % ALIGNMENT)
        place = {"at": len(self.body), "size": len(content)}
        self.body += content
        return place

    def whole(self, values: NDArray[Any], code: str = "float32") -> Reference:
        """Append an array. Return its reference."""
        return {"shape": [*values.shape], "code": code} | self.add(encode_values(values, code))

    def later(self, values: NDArray[Any], code: str) -> Reference:
        """Keep an array for the page to ask for. Return its reference."""
        self.blobs.append(lambda: encode_values(values, code))
        return {"shape": [*values.shape], "code": code, "blob": len(self.blobs) - 1}

    def map(self, values: NDArray[Any], is_large: bool | None = None) -> Reference:
        """Add a map of rows and columns: whole, or where it is large as overview and tiles."""
        if not (values.size > WHOLE_CELLS if is_large is None else is_large):
            return self.whole(values)
        code, overview = code_of(values), largest(values, OVERVIEW)
        rows, columns = (range(0, side, TILE) for side in values.shape)
        tiles = [
            [self.later(values[row : row + TILE, column : column + TILE], code) for column in columns]
            for row in rows
        ]
        reference = {"shape": [*values.shape], "code": code, "tile": TILE, "tiles": tiles}
        return reference | {"pool": overview.size, "overview": self.whole(overview.values, code)}

    def grid(self, values: NDArray[Any]) -> dict[str, Any]:
        """Add maps in rows and columns: the overviews of all of them, and each map."""
        is_large, code = values.size > WHOLE_CELLS, code_of(values)
        overview = largest(values, THUMBNAIL)
        maps = [[self._map_of_grid(one, is_large, code) for one in row] for row in values]
        return {"overview": self.whole(overview.values), "pool": overview.size, "maps": maps}

    def _map_of_grid(self, values: NDArray[Any], is_large: bool, code: str) -> Reference:
        if values.size > WHOLE_CELLS * 4:
            return self.map(values, True)
        return self.later(values, code) if is_large else self.whole(values)


def code_of(values: NDArray[Any]) -> str:
    """Return the code of a large array: square roots in a byte for shares, else float32."""
    if not values.size or np.isnan(values).all():
        return "float32"
    return "sqrt8" if np.nanmin(values) >= 0 and np.nanmax(values) <= 1 else "float32"


def encode_values(values: NDArray[Any], code: str) -> bytes:
    """Return an array as little-endian bytes, the last dimension fastest."""
    if code == "sqrt8":
        levels = np.sqrt(values, dtype=np.float32) * LEVELS + np.float32(0.5)
        return np.where(np.isnan(levels), NOTHING, levels).astype(np.uint8).tobytes()
    return values.astype({"float32": "<f4", "float64": "<f8"}[code]).tobytes()


def largest(values: NDArray[Any], side: int) -> Pooled:
    """Return the last two dimensions with at most `side` rows and columns.

    Each cell has the number that is farthest from 0, so that no single large one vanishes.
    """
    *others, rows, columns = values.shape
    size = max(1, -(-max(rows, columns) // side))
    if size == 1 or not values.size:
        return Pooled(values, 1)
    padding = [(0, 0)] * len(others) + [(0, -rows % size), (0, -columns % size)]
    padded = np.pad(values.astype(np.float32), padding, constant_values=np.nan)
    down, across = padded.shape[-2] // size, padded.shape[-1] // size
    blocks = (
        padded.reshape(*others, down, size, across, size).swapaxes(-3, -2).reshape(*others, down, across, -1)
    )
    order = np.nan_to_num(np.abs(blocks), nan=-1.0).argmax(-1)
    return Pooled(np.take_along_axis(blocks, order[..., None], -1)[..., 0], size)
