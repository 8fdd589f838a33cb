"""Images stand upright in their rows, and what is drawn over them lies at its pixels."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from foveal.inspection.figures import images
from foveal.inspection.panels import Caption, ImageRow, Images, Mark, Tile
from foveal.inspection.style import ROLE_COLORS, new_figure

SIDE, GAP = 2.0, 0.5
PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
PIXEL = SIDE / 4
"""Inches of a pixel: the longer side of an image has the size of a tile."""


def drawn(*rows: ImageRow) -> Any:
    figure = new_figure(6.0, 6.0)
    (part,) = figure.subfigures(1, 1, squeeze=False)[0]
    images.draw(part, Images("", rows, SIDE, GAP))
    return figure.axes[0]


def over(mark: Mark) -> Any:
    """Return the axes of an image with a mark."""
    return drawn(ImageRow((Tile(PIXELS, marks=(mark,)),)))


def test_images_stand_upright_side_by_side_and_below_each_other() -> None:
    gray = Tile(PIXELS[..., :1])
    axes = drawn(ImageRow((Tile(PIXELS), None, gray)), ImageRow((gray,)))
    first, second, below = axes.images
    height = 2 * PIXEL
    assert first.get_extent() == [0, SIDE, height, 0], "left, right, bottom, top"
    assert second.get_extent() == [2 * (SIDE + GAP), 2 * (SIDE + GAP) + SIDE, height, 0]
    assert below.get_extent() == [0, SIDE, 2 * height + GAP, height + GAP]
    assert np.array_equal(first.get_array(), PIXELS)
    bottom, top = axes.get_ylim()
    assert bottom > top, "the first row is the upper one"


def test_gray_is_the_same_in_every_image() -> None:
    axes = drawn(ImageRow((Tile(PIXELS[..., :1]),)))
    assert axes.images[0].get_clim() == (0, 255)


def test_numbers_over_an_image_are_on_the_scale_from_0_to_1() -> None:
    heat = np.array([[0.0, 0.25], [0.5, 0.75]])
    axes = drawn(ImageRow((Tile(PIXELS, heat=heat),)))
    assert np.array_equal(axes.images[1].get_array(), heat)
    assert axes.images[1].get_clim() == (0, 1)
    assert axes.images[1].get_extent() == axes.images[0].get_extent()


def test_a_path_runs_through_the_middles_of_its_pixels() -> None:
    """Points are down and across."""
    axes = over(Mark(np.array([[0.0, 3.0], [1.0, 0.0]]), end="cross", numbered=True))
    line, end = axes.lines
    assert line.get_xydata() == pytest.approx(PIXEL * np.array([[3.5, 0.5], [0.5, 1.5]]))
    assert end.get_xydata() == pytest.approx(PIXEL * np.array([[0.5, 1.5]])), "the last point"
    numbers = {text.get_text(): text.get_position() for text in axes.texts if text.get_text()}
    assert numbers == {"1": pytest.approx(line.get_xydata()[0]), "2": pytest.approx(line.get_xydata()[1])}


def test_a_frame_is_closed_and_an_arrow_points_to_its_last_point() -> None:
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [1.0, 2.0]])
    (frame,) = over(Mark(corners, closed=True)).lines
    assert len(frame.get_xydata()) == 4
    assert frame.get_xydata()[3] == pytest.approx(frame.get_xydata()[0])
    (arrow,) = [text for text in over(Mark(corners, end="arrow")).texts if hasattr(text, "arrow_patch")]
    assert arrow.xy == pytest.approx((2.5 * PIXEL, 1.5 * PIXEL))
    assert arrow.get_position() == pytest.approx((0.5 * PIXEL, 0.5 * PIXEL))


def test_captions_stand_below_their_image_in_the_color_of_their_role() -> None:
    tile = Tile(PIXELS, (Caption("cat", "correct"), Caption("dog", "incorrect")))
    axes = drawn(ImageRow((None, tile), captions=(Caption("all", "muted"),)))
    found = {text.get_text(): text for text in axes.texts if text.get_text()}
    colors = {name: to_hex(text.get_color()) for name, text in found.items()}
    assert colors == {
        "cat": ROLE_COLORS["correct"],
        "dog": ROLE_COLORS["incorrect"],
        "all": ROLE_COLORS["muted"],
    }
    assert found["cat"].get_position()[0] == pytest.approx(SIDE + GAP + SIDE / 2)
    heights = [found[name].get_position()[1] for name in ("cat", "dog", "all")]
    assert 2 * PIXEL < heights[0] < heights[1] < heights[2]
