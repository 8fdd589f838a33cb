"""Drawings as PNGs: one alone, many on a sheet, and how each came to be, step by step."""

import io

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

GAP, TILE = 4, 56
"""Pixels between drawings on a sheet, and of the side of one, enlarged if it is smaller."""
FRAME = (225, 29, 72)


def one(drawing: UInt8[np.ndarray, "H W"]) -> bytes:
    """As it is, pixel by pixel."""
    return _png(Image.fromarray(drawing))


def sheet(drawings: UInt8[np.ndarray, "N H W"]) -> bytes:
    """All of them, in rows."""
    columns = max(1, round(len(drawings) ** 0.5))
    rows = [drawings[start : start + columns] for start in range(0, len(drawings), columns)]
    return _png(_tiled([[_enlarged(drawing) for drawing in row] for row in rows]))


def steps(drawings: UInt8[np.ndarray, "N T H W"], windows: Float[np.ndarray, "N T 4"]) -> bytes:
    """A row for each drawing: its canvas after every step, and framed where that step wrote: from the first
    filter of the grid to the last, down and across."""
    return _png(
        _tiled(
            [
                [_framed(drawing, window) for drawing, window in zip(row, where, strict=True)]
                for row, where in zip(drawings, windows, strict=True)
            ]
        )
    )


def _framed(drawing: UInt8[np.ndarray, "H W"], window: Float[np.ndarray, "4"]) -> Image.Image:
    tile = _enlarged(drawing)
    scale = tile.size[1] / len(drawing)
    top, bottom, left, right = ((window + 0.5) * scale).tolist()
    ImageDraw.Draw(tile).rectangle((left, top, right, bottom), outline=FRAME)
    return tile


def _enlarged(drawing: UInt8[np.ndarray, "H W"]) -> Image.Image:
    image = Image.fromarray(drawing).convert("RGB")
    scale = max(1, TILE // min(image.size))
    return image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)


def _tiled(rows: list[list[Image.Image]]) -> Image.Image:
    width, height = rows[0][0].size
    whole = (len(rows[0]) * (width + GAP) + GAP, len(rows) * (height + GAP) + GAP)
    picture = Image.new("RGB", whole, "white")
    for down, row in enumerate(rows):
        for across, tile in enumerate(row):
            picture.paste(tile, (GAP + across * (width + GAP), GAP + down * (height + GAP)))
    return picture


def _png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()
