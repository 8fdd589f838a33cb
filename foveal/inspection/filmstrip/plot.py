"""Clips as strips of their frames, with what a model says under each frame, or of the whole, as a PNG."""

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from foveal.core.errors import UserError

TILE_SIZE, GAP, LINE_HEIGHT, MAX_HEIGHT = 70, 4, 15, 20_000
"""Pixels of a frame's side, between frames, of a line of text, and of the whole picture."""
CORRECT_COLOR, INCORRECT_COLOR, MUTED_COLOR = "#15803d", "#b45309", "#52606d"


class Filmstrip(NamedTuple):
    """A clip, and what a model says of it: something for each frame, or one thing; `references` is what it
    should be, or None where that is unknown."""

    frames: UInt8[np.ndarray, "T H W C"]
    predictions: Sequence[str]
    references: Sequence[str] | None


def plot_filmstrips(strips: Sequence[Filmstrip]) -> bytes:
    """The PNG's content; what is right is green, and below what is not stands what would be.

    UserError for more than fits a picture.
    """
    heights = [TILE_SIZE + LINE_HEIGHT * (1 + bool(_mistakes(strip))) + 2 * GAP for strip in strips]
    if sum(heights) > MAX_HEIGHT:
        raise UserError(f"{len(strips):,} clips are too many for a picture; give fewer")
    wide = max(len(strip.frames) for strip in strips) * (TILE_SIZE + GAP) + GAP
    sheet = Image.new("RGB", (wide, sum(heights) + GAP), "white")
    top = GAP
    for strip, height in zip(strips, heights, strict=True):
        _draw_filmstrip(sheet, strip, top)
        top += height
    content = io.BytesIO()
    sheet.save(content, "PNG", optimize=True)
    return content.getvalue()


def _draw_filmstrip(sheet: Image.Image, strip: Filmstrip, top: int) -> None:
    for number, frame in enumerate(strip.frames):
        image = Image.fromarray(frame[..., 0] if frame.shape[-1] == 1 else frame)
        image = image.resize((TILE_SIZE, TILE_SIZE), Image.Resampling.NEAREST)
        sheet.paste(image, (GAP + number * (TILE_SIZE + GAP), top))
    room = sheet.width - 2 * GAP if len(strip.predictions) == 1 else TILE_SIZE
    faults = _mistakes(strip)
    for number, text in enumerate(strip.predictions):
        x, y = GAP + number * (TILE_SIZE + GAP), top + TILE_SIZE + 1
        colour = (
            MUTED_COLOR
            if strip.references is None
            else INCORRECT_COLOR
            if number in faults
            else CORRECT_COLOR
        )
        _draw_text(sheet, (x, y), text, colour, room)
        if number in faults:
            _draw_text(sheet, (x, y + LINE_HEIGHT), faults[number], MUTED_COLOR, room)


def _draw_text(sheet: Image.Image, position: tuple[int, int], text: str, color: str, max_width: int) -> None:
    """Cut to so many pixels."""
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    while text and draw.textlength(text, font) > max_width:
        text = text[:-1]
    draw.text(position, text, color, font)


def _mistakes(strip: Filmstrip) -> dict[int, str]:
    """By place what is right, where something else is said."""
    pairs = zip(strip.predictions, strip.references or strip.predictions, strict=True)
    return {number: right for number, (said, right) in enumerate(pairs) if said != right}
