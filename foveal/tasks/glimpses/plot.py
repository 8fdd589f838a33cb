"""The glimpses of a model, as a PNG (the recurrent attention model, Mnih et al. 2014).

On the left is the image with the path drawn over it. Each glimpse follows, with the model's prediction after
the glimpse.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from foveal.inspection.style import (
    HIGHLIGHT_COLOR,
    THUMBNAIL_DPI,
    answer_color,
    check_height,
    cut_text,
    figure_png,
    image_grid,
    label_below,
    new_figure,
    show_pixels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL, LINE_HEIGHT = 1.25, 0.3
"""Inches of an image's side, and of the line below the image."""
MAX_LABEL_LENGTH = 16
"""Letters of a label. Longer labels are cut."""


class GlimpsedImage(NamedTuple):
    """An image with its T glimpses. A glimpse is several squares, from the narrowest to the widest."""

    pixels: UInt8[np.ndarray, "H W C"]
    places: Float[np.ndarray, "T 2"]
    """Vertical and horizontal, from -1 to 1."""
    glimpses: UInt8[np.ndarray, "T S side side C"]
    predictions: Sequence[tuple[str, float]]
    """The likeliest label after each glimpse, and its probability."""
    label: str | None
    """The correct label, if known."""


def plot_glimpses(images: Sequence[GlimpsedImage]) -> bytes:
    """Return the PNG. Correct predictions are green.

    Raises: UserError: there are more images than fit in a figure.
    """
    columns = 1 + max(len(image.places) for image in images)
    height = len(images) * (CELL + LINE_HEIGHT)
    check_height(height, f"{len(images):,} images", "give fewer")
    figure = new_figure(columns * CELL, height)
    grid = image_grid(figure, len(images), columns)
    figure.subplots_adjust(0, LINE_HEIGHT / height, 1, 1, 0.06, LINE_HEIGHT / CELL)
    for row, image in zip(grid, images, strict=True):
        show_pixels(row[0], image.pixels)
        label_below(row[0], cut_text(image.label or "", MAX_LABEL_LENGTH))
        _draw_path(row[0], image)
        for axes, squares, (label, share) in zip(row[1:], image.glimpses, image.predictions, strict=False):
            show_pixels(axes, composite_glimpse(squares))
            text = f"{cut_text(label, MAX_LABEL_LENGTH)}  {100 * share:.0f} %"
            label_below(axes, text, color=answer_color(label, image.label))
    return figure_png(figure, THUMBNAIL_DPI)


def composite_glimpse(squares: UInt8[np.ndarray, "S side side C"]) -> UInt8[np.ndarray, "wide wide C"]:
    """Return a single image of the squares around a location: the widest square, with narrower squares over
    its center."""
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


def _draw_path(axes: "Axes", image: GlimpsedImage) -> None:
    from matplotlib.patches import Rectangle

    height, width = image.pixels.shape[:2]
    down, across = ((image.places[:, axis] + 1) / 2 * side - 0.5 for axis, side in ((0, height), (1, width)))
    axes.plot(across, down, color=HIGHLIGHT_COLOR, linewidth=1)
    side = image.glimpses.shape[2]
    for number, (y, x) in enumerate(zip(down, across, strict=True), 1):
        axes.add_patch(
            Rectangle((x - side / 2, y - side / 2), side, side, fill=False, color=HIGHLIGHT_COLOR, alpha=0.4)
        )
        axes.text(
            x, y, str(number), color=HIGHLIGHT_COLOR, fontsize=7, ha="center", va="center", clip_on=True
        )
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
