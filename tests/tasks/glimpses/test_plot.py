"""Glimpses drawn: the path runs where the model looked, and what was seen there stands beside it."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageColor

from foveal.core.errors import UserError
from foveal.inspection.style import CORRECT_COLOR, HIGHLIGHT_COLOR, INCORRECT_COLOR, MUTED_COLOR
from foveal.tasks.glimpses.plot import (
    GlimpsedImage,
    composite_glimpse,
    plot_glimpses,
)

H, W, SIDE = 24, 48, 6
CORNERS = (0, 255, 0), (0, 0, 255)
"""Of the first pixel and of the last: where the image lies in the picture."""
PLACES = np.array([[0.0, 0.0], [-0.5, 0.75]], np.float32)
SHADES = (130, 200)
"""What is seen at each place."""


def glimpsed(label: str | None = None) -> GlimpsedImage:
    pixels = np.zeros((H, W, 3), np.uint8)
    pixels[0, 0], pixels[-1, -1] = CORNERS
    seen = np.stack([np.full((1, SIDE, SIDE, 3), shade, np.uint8) for shade in SHADES])
    return GlimpsedImage(pixels, PLACES, seen, [("cat", 0.6), ("dog", 0.7)], label)


def picture(*images: GlimpsedImage) -> NDArray[np.int64]:
    with Image.open(io.BytesIO(plot_glimpses(images))) as image:
        return np.asarray(image.convert("RGB")).astype(np.int64)


def where(found: NDArray[np.int64], color: tuple[float, ...] | str, within: int = 3) -> NDArray[np.int64]:
    """The pixels (N, 2) of a colour, down and across."""
    rgb = ImageColor.getrgb(color) if isinstance(color, str) else color
    return np.argwhere(abs(found - rgb).max(-1) <= within)


def test_the_path_runs_from_place_to_place() -> None:
    found = picture(glimpsed())
    first, last = (where(found, colour).mean(0) for colour in CORNERS)

    def at(down: float, across: float) -> NDArray[np.float64]:
        """A place of the image, its pixels being counted from their middles, in the picture."""
        return first + (last - first) * (down / (H - 1), across / (W - 1))

    line = where(found, HIGHLIGHT_COLOR, 60)
    middle, end = at(H / 2 - 0.5, W / 2 - 0.5), at(0.25 * H - 0.5, 0.875 * W - 0.5)
    for share in (0.3, 0.5, 0.7):
        assert abs(line - (middle + share * (end - middle))).max(1).min() <= 1
    number = 6  # pixels of the picture to any side that one may take
    for axis in (0, 1):
        low, high = sorted((middle[axis], end[axis]))
        assert low - number <= line[:, axis].min() <= low + 1
        assert high - 1 <= line[:, axis].max() <= high + number

    dim = tuple(0.4 * level for level in ImageColor.getrgb(HIGHLIGHT_COLOR))  # of a square over black
    square = where(found, dim, 25)
    for down, across in ((H / 2, W / 2), (0.25 * H, 0.875 * W)):
        for corner in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            side = at(*(np.array([down, across]) - 0.5 + np.array(corner) * SIDE / 2))
            assert abs(square - side).max(1).min() <= 1.5


def test_what_was_seen_stands_beside_the_image_in_its_order() -> None:
    found = picture(glimpsed(), glimpsed())
    lefts = [where(found[: len(found) // 2], (shade,) * 3)[:, 1] for shade in SHADES]
    image = where(found, CORNERS[1])[:, 1].max()
    assert image < lefts[0].min() <= lefts[0].max() < lefts[1].min()


def test_an_answer_has_the_colour_of_its_being_right() -> None:
    for label, expected in (
        (None, {MUTED_COLOR}),
        ("cat", {CORRECT_COLOR, INCORRECT_COLOR}),
        ("cow", {INCORRECT_COLOR}),
    ):
        found = picture(glimpsed(label))
        assert {
            name for name in (MUTED_COLOR, CORRECT_COLOR, INCORRECT_COLOR) if len(where(found, name, 12))
        } == expected
    green, amber = (
        where(picture(glimpsed("cat")), name, 12)[:, 1] for name in (CORRECT_COLOR, INCORRECT_COLOR)
    )
    assert green.max() < amber.min()


def test_narrower_squares_lie_over_the_middle_of_wider_ones() -> None:
    squares = np.arange(8, dtype=np.uint8).reshape(2, 2, 2, 1)
    expected = [[4, 4, 5, 5], [4, 0, 1, 5], [6, 2, 3, 7], [6, 6, 7, 7]]
    assert composite_glimpse(squares)[:, :, 0].tolist() == expected


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(UserError, match="taller than 200 inches; give fewer"):
        plot_glimpses([glimpsed()] * 400)
