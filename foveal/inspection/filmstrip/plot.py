"""Clips as strips of frames, with a prediction below each frame or for the whole clip, as a PNG."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from foveal.core.errors import UserError
from foveal.inspection.style import (
    CORRECT_COLOR,
    INCORRECT_COLOR,
    MUTED_COLOR,
    draw_text,
    image_png,
    new_sheet,
    to_image,
)

TILE_SIZE, GAP, LINE_HEIGHT, MAX_HEIGHT = 70, 4, 15, 20_000
"""Pixels of a frame's side, between frames, of a line of text, and of the whole picture."""


class Filmstrip(NamedTuple):
    """A clip with a prediction for each frame, or for the whole clip. `references` is None where unknown."""

    frames: UInt8[np.ndarray, "T H W C"]
    predictions: Sequence[str]
    references: Sequence[str] | None


def plot_filmstrips(strips: Sequence[Filmstrip]) -> bytes:
    """Return the PNG. Correct predictions are green. The reference is written below an incorrect prediction.

    Raises: UserError: there are more clips than fit in a picture.
    """
    heights = [TILE_SIZE + LINE_HEIGHT * (1 + bool(_mistakes(strip))) + 2 * GAP for strip in strips]
    if sum(heights) > MAX_HEIGHT:
        raise UserError(f"{len(strips):,} clips are too many for one picture: give fewer")
    width = max(len(strip.frames) for strip in strips) * (TILE_SIZE + GAP) + GAP
    sheet = new_sheet(width, sum(heights) + GAP)
    top = GAP
    for strip, height in zip(strips, heights, strict=True):
        _draw_filmstrip(sheet, strip, top)
        top += height
    return image_png(sheet, optimize=True)


def _draw_filmstrip(sheet: Image.Image, strip: Filmstrip, top: int) -> None:
    for number, frame in enumerate(strip.frames):
        image = to_image(frame).resize((TILE_SIZE, TILE_SIZE), Image.Resampling.NEAREST)
        sheet.paste(image, (GAP + number * (TILE_SIZE + GAP), top))
    width = sheet.width - 2 * GAP if len(strip.predictions) == 1 else TILE_SIZE
    mistakes = _mistakes(strip)
    for number, text in enumerate(strip.predictions):
        x, y = GAP + number * (TILE_SIZE + GAP), top + TILE_SIZE + 1
        color = INCORRECT_COLOR if number in mistakes else CORRECT_COLOR
        draw_text(sheet, (x, y), text, MUTED_COLOR if strip.references is None else color, width)
        if number in mistakes:
            draw_text(sheet, (x, y + LINE_HEIGHT), mistakes[number], MUTED_COLOR, width)


def _mistakes(strip: Filmstrip) -> dict[int, str]:
    """Return the references of the incorrect predictions, by their indices."""
    pairs = zip(strip.predictions, strip.references or strip.predictions, strict=True)
    return {number: reference for number, (text, reference) in enumerate(pairs) if text != reference}
