"""Where a model of glimpses looked, as a PNG: on the left the image with the path over it, then what was seen
at each place, and what the model would have answered there (the recurrent attention model, Mnih et al. 2014).
"""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from foveal.core.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL, LINE_HEIGHT, MAX_HEIGHT = 1.25, 0.3, 200.0
"""Inches of an image's side, of the line below it, and of the whole picture."""
CORRECT_COLOR, INCORRECT_COLOR, MUTED_COLOR, PATH_COLOR = "#15803d", "#b45309", "#52606d", "#e11d48"


class GlimpsedImage(NamedTuple):
    """An image with its T glimpses, each of squares from the narrowest to the widest."""

    pixels: UInt8[np.ndarray, "H W C"]
    places: Float[np.ndarray, "T 2"]
    """Down and across, -1 to 1."""
    glimpses: UInt8[np.ndarray, "T S side side C"]
    predictions: Sequence[tuple[str, float]]
    """After each glimpse the likeliest label, and its probability."""
    label: str | None
    """The right one, if it is known."""


def plot_glimpses(images: Sequence[GlimpsedImage]) -> bytes:
    """The PNG's content; an answer that is right is green. UserError for more than fits a picture."""
    from matplotlib.figure import Figure

    columns, height = 1 + max(len(one.places) for one in images), CELL + LINE_HEIGHT
    if len(images) * height > MAX_HEIGHT:
        raise UserError(
            f"a picture of {len(images):,} images would be taller than {MAX_HEIGHT:.0f} inches; give fewer"
        )
    figure = Figure(figsize=(columns * CELL, len(images) * height))
    grid = figure.subplots(len(images), columns, squeeze=False)
    figure.subplots_adjust(0, LINE_HEIGHT / figure.get_figheight(), 1, 1, 0.06, LINE_HEIGHT / CELL)
    for axes in grid.flat:
        axes.set_axis_off()
    for row, one in zip(grid, images, strict=True):
        _show_image(row[0], one.pixels, one.label or "", "black")
        _draw_path(row[0], one)
        for axes, squares, (answer, chance) in zip(row[1:], one.glimpses, one.predictions, strict=False):
            colour = (
                MUTED_COLOR
                if one.label is None
                else CORRECT_COLOR
                if answer == one.label
                else INCORRECT_COLOR
            )
            _show_image(axes, composite_glimpse(squares), f"{answer}  {100 * chance:.0f} %", colour)
    content = io.BytesIO()
    figure.savefig(content, dpi=110)
    return content.getvalue()


def composite_glimpse(squares: UInt8[np.ndarray, "S side side C"]) -> UInt8[np.ndarray, "wide wide C"]:
    """One image of the squares about a place: the widest, and over its middle the narrower ones."""
    scales, side = squares.shape[:2]
    wide = side << (scales - 1)
    image = np.zeros((wide, wide, squares.shape[-1]), np.uint8)
    for scale in reversed(range(scales)):
        start, fine = (
            (wide - (side << scale)) // 2,
            squares[scale].repeat(1 << scale, 0).repeat(1 << scale, 1),
        )
        image[start : start + len(fine), start : start + len(fine)] = fine
    return image


def _draw_path(axes: "Axes", one: GlimpsedImage) -> None:
    from matplotlib.patches import Rectangle

    height, width = one.pixels.shape[:2]
    down, across = ((one.places[:, axis] + 1) / 2 * side - 0.5 for axis, side in ((0, height), (1, width)))
    axes.plot(across, down, color=PATH_COLOR, linewidth=1)
    side = one.glimpses.shape[2]
    for number, (y, x) in enumerate(zip(down, across, strict=True), 1):
        axes.add_patch(
            Rectangle((x - side / 2, y - side / 2), side, side, fill=False, color=PATH_COLOR, alpha=0.4)
        )
        axes.text(x, y, str(number), color=PATH_COLOR, fontsize=7, ha="center", va="center", clip_on=True)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))


def _show_image(axes: "Axes", pixels: UInt8[np.ndarray, "H W C"], below: str, color: str) -> None:
    grey = pixels.shape[-1] == 1
    axes.imshow(pixels[..., 0] if grey else pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    place: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "top"}
    axes.text(0.5, -0.03, below, color=color, fontsize=8, parse_math=False, **place)
