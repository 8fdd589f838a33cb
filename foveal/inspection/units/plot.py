"""Units as a PNG, one per row: the patches that activate the unit most, and guided backpropagation to them.

The last columns are guided backpropagation through a layer of random weights.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from foveal.inspection.style import draw_text, image_png, new_sheet, resize_to_side, to_image

CELL, GAP, GROUP_GAP, MARGIN, LINE_HEIGHT = 56, 2, 14, 60, 18
"""Pixels of a patch's side, between patches, between groups, for a unit's name, and of a line of text."""
COLUMN_TITLES = ("strongest responses", "guided backpropagation", "the same, the layer's weights random")


class UnitPatch(NamedTuple):
    """The part of an image in a unit's receptive field, and the two signals there, channel by channel."""

    pixels: UInt8[np.ndarray, "h w C"]
    guided: Float[np.ndarray, "C h w"]
    control: Float[np.ndarray, "C h w"]


def plot_units(rows: Sequence[tuple[str, Sequence[UnitPatch]]], title: str) -> bytes:
    """Return the PNG of units by name. All units have the same number of patches."""
    count = max(len(patches) for _, patches in rows)
    group = count * (CELL + GAP) + GROUP_GAP
    sheet = new_sheet(MARGIN + 3 * group, 2 * LINE_HEIGHT + len(rows) * (CELL + GAP) + GAP)
    draw_text(sheet, (GAP, GAP), title)
    for number, column_title in enumerate(COLUMN_TITLES):
        draw_text(sheet, (MARGIN + number * group, LINE_HEIGHT), column_title)
    for row, (name, patches) in enumerate(rows):
        y = 2 * LINE_HEIGHT + row * (CELL + GAP)
        draw_text(sheet, (GAP, y + CELL // 2 - 6), name)
        for column, patch in enumerate(patches):
            x = MARGIN + column * (CELL + GAP)
            images = patch.pixels, signal_to_pixels(patch.guided), signal_to_pixels(patch.control)
            for number, pixels in enumerate(images):
                sheet.paste(resize_to_side(to_image(pixels), CELL), (x + number * group, y))
    return image_png(sheet)


def signal_to_pixels(signal: Float[np.ndarray, "C h w"]) -> UInt8[np.ndarray, "h w C"]:
    """Return the signal as pixels: gray is 0, and the largest absolute value is white or black."""
    largest = float(np.abs(signal).max()) or 1.0
    levels: UInt8[np.ndarray, "h w C"] = np.round(127.5 + 127.5 * signal / largest).astype(np.uint8)
    return levels.transpose(1, 2, 0)
