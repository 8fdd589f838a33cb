"""Units as a PNG, a row each: the patches that move it most, what guided backpropagation draws of them, and
what it draws of them through a layer of random weights."""

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

CELL, GAP, GROUP_GAP, MARGIN, LINE_HEIGHT = 56, 2, 14, 60, 18
"""Pixels of a patch's side, between two, between the kinds, for the unit's name, and of a line of text."""
COLUMN_TITLES = ("what moves it most", "guided backpropagation", "the same, the layer's weights random")


class UnitPatch(NamedTuple):
    """What a unit sees of an image, and the two signals there, channel by channel."""

    pixels: UInt8[np.ndarray, "h w C"]
    guided: Float[np.ndarray, "C h w"]
    control: Float[np.ndarray, "C h w"]


def plot_units(rows: Sequence[tuple[str, Sequence[UnitPatch]]], title: str) -> bytes:
    """The PNG's content: units by their names, each with as many patches."""
    count = max(len(patches) for _, patches in rows)
    group = count * (CELL + GAP) + GROUP_GAP
    sheet = Image.new("RGB", (MARGIN + 3 * group, 2 * LINE_HEIGHT + len(rows) * (CELL + GAP) + GAP), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    pen.text((GAP, GAP), title, "black", font)
    for number, kind in enumerate(COLUMN_TITLES):
        pen.text((MARGIN + number * group, LINE_HEIGHT), kind, "black", font)
    for down, (name, patches) in enumerate(rows):
        y = 2 * LINE_HEIGHT + down * (CELL + GAP)
        pen.text((GAP, y + CELL // 2 - 6), name, "black", font)
        for across, patch in enumerate(patches):
            x = MARGIN + across * (CELL + GAP)
            for number, pixels in enumerate(
                (patch.pixels, signal_to_pixels(patch.guided), signal_to_pixels(patch.control))
            ):
                _paste(sheet, pixels, x + number * group, y)
    content = io.BytesIO()
    sheet.save(content, "PNG")
    return content.getvalue()


def signal_to_pixels(signal: Float[np.ndarray, "C h w"]) -> UInt8[np.ndarray, "h w C"]:
    """Grey is 0, and the largest size of any number white or black."""
    largest = float(np.abs(signal).max()) or 1.0
    levels: UInt8[np.ndarray, "h w C"] = np.round(127.5 + 127.5 * signal / largest).astype(np.uint8)
    return levels.transpose(1, 2, 0)


def _paste(sheet: Image.Image, pixels: UInt8[np.ndarray, "h w C"], x: int, y: int) -> None:
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    scale = CELL / max(image.size)
    sides = [max(1, round(scale * side)) for side in image.size]
    how = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX
    sheet.paste(image.resize((sides[0], sides[1]), how), (x, y))
