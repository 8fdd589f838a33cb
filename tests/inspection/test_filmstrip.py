"""Strips of frames: where they stand, and what is written below them in which colour."""

import io

import numpy as np
import pytest
from jaxtyping import UInt8
from PIL import Image, ImageColor

from foveal.core.errors import UserError
from foveal.inspection.filmstrip.plot import (
    GAP,
    LINE_HEIGHT,
    TILE_SIZE,
    Filmstrip,
    plot_filmstrips,
)
from foveal.inspection.style import CORRECT_COLOR, INCORRECT_COLOR, MUTED_COLOR

FRAMES: UInt8[np.ndarray, "T H W C"] = np.arange(3, dtype=np.uint8)[:, None, None, None] * 50 + np.zeros(
    (3, 4, 4, 1), np.uint8
)


def drawn(*strips: Filmstrip) -> UInt8[np.ndarray, "H W 3"]:
    return np.asarray(Image.open(io.BytesIO(plot_filmstrips(strips))))


def has(part: UInt8[np.ndarray, "h w 3"], color: str) -> bool:
    """Or nearly: letters have soft edges."""
    return bool((abs(part.astype(int) - ImageColor.getrgb(color)).max(2) < 45).any())


def below(sheet: UInt8[np.ndarray, "H W 3"], frame: int, line: int) -> UInt8[np.ndarray, "h w 3"]:
    left, top = GAP + frame * (TILE_SIZE + GAP), GAP + TILE_SIZE + line * LINE_HEIGHT
    return sheet[top : top + LINE_HEIGHT, left : left + TILE_SIZE]


def test_frames_stand_in_order_with_their_labels() -> None:
    sheet = drawn(Filmstrip(FRAMES, ["3-up", "3-up", "3-up"], ["3-up", "8-down", "3-up"]))
    for frame in range(3):
        left = GAP + frame * (TILE_SIZE + GAP)
        assert (sheet[GAP : GAP + TILE_SIZE, left : left + TILE_SIZE] == 50 * frame).all()
        assert has(below(sheet, frame, 0), INCORRECT_COLOR if frame == 1 else CORRECT_COLOR)
        assert has(below(sheet, frame, 1), MUTED_COLOR) == (frame == 1)  # what would be right
    assert sheet.shape[1] == 3 * (TILE_SIZE + GAP) + GAP


def test_one_text_has_the_whole_row() -> None:
    text = "it moves up and bounces off the"
    sheet = drawn(Filmstrip(FRAMES, [text], None), Filmstrip(FRAMES[:1], [text], [text]))
    assert has(below(sheet, 0, 0), MUTED_COLOR)
    assert has(below(sheet, 1, 0), MUTED_COLOR)
    assert not has(sheet, INCORRECT_COLOR)
    assert has(sheet, CORRECT_COLOR)


def test_colours_stay_and_too_many_are_refused() -> None:
    red = np.zeros((2, 4, 4, 3), np.uint8)
    red[..., 0] = 200
    assert (drawn(Filmstrip(red, ["a"], None))[GAP + 1, GAP + 1] == (200, 0, 0)).all()
    with pytest.raises(UserError, match="300 clips are too many for one picture"):
        drawn(*[Filmstrip(red, ["a"], None)] * 300)
