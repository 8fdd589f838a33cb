"""Drawings as PNGs: a single drawing, a sheet of many, and the canvas after each step."""

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

from foveal.inspection.style import HIGHLIGHT_COLOR, image_png, new_sheet

GAP, TILE_SIZE = 4, 56
"""Pixels between drawings on a sheet, and smallest side of a drawing. Smaller drawings are enlarged."""


def encode_png(pixels: UInt8[np.ndarray, "H W"]) -> bytes:
    """Return the PNG of a drawing, one pixel for each pixel."""
    return image_png(Image.fromarray(pixels))


def image_grid(images: UInt8[np.ndarray, "N H W"]) -> bytes:
    """Return the PNG of all drawings, in rows."""
    columns = max(1, round(len(images) ** 0.5))
    rows = [images[start : start + columns] for start in range(0, len(images), columns)]
    return image_png(_tile([[_enlarge(drawing) for drawing in row] for row in rows]))


def step_grid(images: UInt8[np.ndarray, "N T H W"], windows: Float[np.ndarray, "N T 4"]) -> bytes:
    """Return the PNG with a row for each drawing: its canvas after each step.

    A frame marks the window of the step, from the first to the last filter of the grid.
    """
    rows = (zip(canvases, frames, strict=True) for canvases, frames in zip(images, windows, strict=True))
    return image_png(_tile([[_draw_window(canvas, frame) for canvas, frame in row] for row in rows]))


def _draw_window(pixels: UInt8[np.ndarray, "H W"], window: Float[np.ndarray, "4"]) -> Image.Image:
    tile = _enlarge(pixels)
    scale = tile.size[1] / len(pixels)
    top, bottom, left, right = ((window + 0.5) * scale).tolist()
    ImageDraw.Draw(tile).rectangle((left, top, right, bottom), outline=HIGHLIGHT_COLOR)
    return tile


def _enlarge(pixels: UInt8[np.ndarray, "H W"]) -> Image.Image:
    image = Image.fromarray(pixels).convert("RGB")
    scale = max(1, TILE_SIZE // min(image.size))
    return image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)


def _tile(rows: list[list[Image.Image]]) -> Image.Image:
    width, height = rows[0][0].size
    sheet = new_sheet(len(rows[0]) * (width + GAP) + GAP, len(rows) * (height + GAP) + GAP)
    for down, row in enumerate(rows):
        for across, tile in enumerate(row):
            sheet.paste(tile, (GAP + across * (width + GAP), GAP + down * (height + GAP)))
    return sheet
