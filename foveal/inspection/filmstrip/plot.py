"""Clips as strips of their frames, with what a model says under each frame, or of the whole, as a PNG."""

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from foveal.core.errors import UserError

TILE, GAP, LINE, TALLEST = 70, 4, 15, 20_000
"""Pixels of a frame's side, between frames, of a line of text, and of the whole picture."""
RIGHT, WRONG, FAINT = "#15803d", "#b45309", "#52606d"


class Filmstrip(NamedTuple):
    """A clip, and what a model says of it: something for each frame, or one thing; `right` is what it should
    be, or None where that is unknown."""

    frames: UInt8[np.ndarray, "T H W C"]
    said: Sequence[str]
    right: Sequence[str] | None


def draw(strips: Sequence[Filmstrip]) -> bytes:
    """The PNG's content; what is right is green, and below what is not stands what would be.

    UserError for more than fits a picture.
    """
    heights = [TILE + LINE * (1 + bool(_faults(strip))) + 2 * GAP for strip in strips]
    if sum(heights) > TALLEST:
        raise UserError(f"{len(strips):,} clips are too many for a picture; give fewer")
    wide = max(len(strip.frames) for strip in strips) * (TILE + GAP) + GAP
    sheet = Image.new("RGB", (wide, sum(heights) + GAP), "white")
    top = GAP
    for strip, height in zip(strips, heights, strict=True):
        _draw_one(sheet, strip, top)
        top += height
    content = io.BytesIO()
    sheet.save(content, "PNG", optimize=True)
    return content.getvalue()


def _draw_one(sheet: Image.Image, strip: Filmstrip, top: int) -> None:
    for number, frame in enumerate(strip.frames):
        image = Image.fromarray(frame[..., 0] if frame.shape[-1] == 1 else frame)
        image = image.resize((TILE, TILE), Image.Resampling.NEAREST)
        sheet.paste(image, (GAP + number * (TILE + GAP), top))
    room = sheet.width - 2 * GAP if len(strip.said) == 1 else TILE
    faults = _faults(strip)
    for number, text in enumerate(strip.said):
        x, y = GAP + number * (TILE + GAP), top + TILE + 1
        colour = FAINT if strip.right is None else WRONG if number in faults else RIGHT
        _write(sheet, (x, y), text, colour, room)
        if number in faults:
            _write(sheet, (x, y + LINE), faults[number], FAINT, room)


def _write(sheet: Image.Image, place: tuple[int, int], text: str, colour: str, room: int) -> None:
    """Cut to so many pixels."""
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    while text and draw.textlength(text, font) > room:
        text = text[:-1]
    draw.text(place, text, colour, font)


def _faults(strip: Filmstrip) -> dict[int, str]:
    """By place what is right, where something else is said."""
    pairs = zip(strip.said, strip.right or strip.said, strict=True)
    return {number: right for number, (said, right) in enumerate(pairs) if said != right}
