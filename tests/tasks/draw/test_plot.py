"""Drawings on a sheet, and the frames of their steps: which pixel is where."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from foveal.inspection.style import HIGHLIGHT_COLOR
from foveal.tasks.draw.plot import GAP, encode_png, image_grid, step_grid

H, W, SCALE = 8, 4, 14
"""Of a drawing, and how much it is enlarged."""


def pixels(png: bytes) -> NDArray[np.int64]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image).astype(np.int64)


def tile(picture: NDArray[np.int64], down: int, across: int) -> NDArray[np.int64]:
    """One drawing of a sheet, without the gaps."""
    top, left = GAP + down * (H * SCALE + GAP), GAP + across * (W * SCALE + GAP)
    return picture[top : top + H * SCALE, left : left + W * SCALE]


def enlarged(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    return pixels.repeat(SCALE, 0).repeat(SCALE, 1)[:, :, None].repeat(3, 2).astype(np.int64)


def test_drawings_lie_in_rows_and_are_what_they_were() -> None:
    drawings = np.random.default_rng(0).integers(0, 256, (5, H, W), np.uint8)
    assert (pixels(encode_png(drawings[0])) == drawings[0]).all()
    picture = pixels(image_grid(drawings))
    assert picture.shape == (3 * (H * SCALE + GAP) + GAP, 2 * (W * SCALE + GAP) + GAP, 3)
    for number, drawing in enumerate(drawings):
        assert (tile(picture, *divmod(number, 2)) == enlarged(drawing)).all()
    assert (tile(picture, 2, 1) == 255).all()


def test_each_step_has_the_frame_of_its_window() -> None:
    """From the middle of one pixel to that of another; inside and outside is the drawing."""
    draw = np.random.default_rng(0)
    drawings = draw.integers(0, 200, (2, 3, H, W), np.uint8)
    windows = np.array(
        [[[1, 6, 2, 3], [0, 2, 0, 1], [3, 7, 1, 3]], [[5, 6, 0, 3], [1, 2, 1, 2], [2, 7, 0, 1]]]
    )
    picture = pixels(step_grid(drawings, windows.astype(np.float32)))
    for row in range(2):
        for step in range(3):
            found, expected = tile(picture, row, step), enlarged(drawings[row, step])
            top, bottom, left, right = (SCALE * windows[row, step] + SCALE // 2).tolist()
            expected[[top, bottom], left : right + 1] = ImageColor.getrgb(HIGHLIGHT_COLOR)
            expected[top : bottom + 1, [left, right]] = ImageColor.getrgb(HIGHLIGHT_COLOR)
            assert (found == expected).all()
