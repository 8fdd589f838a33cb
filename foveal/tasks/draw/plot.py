"""Drawings as PNGs: one alone, many on a sheet, and how each came to be, step by step."""

import io

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

GAP, TILE_SIZE = 4, 56
"""Pixels between drawings on a sheet, and of the side of one, enlarged if it is smaller."""
FRAME_COLOR = (225, 29, 72)


def encode_png(pixels: UInt8[np.ndarray, "H W"]) -> bytes:
    """As it is, pixel by pixel."""
    return _png(Image.fromarray(pixels))


def image_grid(images: UInt8[np.ndarray, "N H W"]) -> bytes:
    """All of them, in rows."""
    columns = max(1, round(len(images) ** 0.5))
    rows = [images[start : start + columns] for start in range(0, len(images), columns)]
    return _png(_tile([[_enlarge(drawing) for drawing in row] for row in rows]))


def step_grid(images: UInt8[np.ndarray, "N T H W"], windows: Float[np.ndarray, "N T 4"]) -> bytes:
    """A row for each drawing: its canvas after every step, and framed where that step wrote: from the first
    filter of the grid to the last, down and across."""
    return _png(
        _tile(
            [
                [_draw_window(drawing, window) for drawing, window in zip(row, where, strict=True)]
                for row, where in zip(images, windows, strict=True)
            ]
        )
    )


def _draw_window(pixels: UInt8[np.ndarray, "H W"], window: Float[np.ndarray, "4"]) -> Image.Image:
    tile = _enlarge(pixels)
    scale = tile.size[1] / len(pixels)
    top, bottom, left, right = ((window + 0.5) * scale).tolist()
    ImageDraw.Draw(tile).rectangle((left, top, right, bottom), outline=FRAME_COLOR)
    return tile


def _enlarge(pixels: UInt8[np.ndarray, "H W"]) -> Image.Image:
    image = Image.fromarray(pixels).convert("RGB")
    scale = max(1, TILE_SIZE // min(image.size))
    return image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)


def _tile(rows: list[list[Image.Image]]) -> Image.Image:
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
