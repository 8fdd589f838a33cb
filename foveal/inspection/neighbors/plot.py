"""Queries and their nearest images as a PNG.

The query is on the left, followed by its nearest images by features. The row below has its nearest images by
pixels.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.inspection.style import (
    MUTED_COLOR,
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

CELL, LINE_HEIGHT = 1.1, 0.34
"""Inches of an image's side, and of the two lines below it."""
MAX_LABEL_LENGTH = 16
"""Letters of a label; longer ones are cut."""


class NeighborImage(NamedTuple):
    """An image with the lines of text below it."""

    pixels: UInt8[np.ndarray, "H W C"]
    label: str
    distance: float | None = None
    """The distance to the query. None for the query itself, whose label is empty where unknown."""


class QueryNeighbors(NamedTuple):
    """A query and its neighbors by features and by pixels, nearest first."""

    query: NeighborImage
    features: Sequence[NeighborImage]
    pixels: Sequence[NeighborImage]


def plot_neighbors(queries: Sequence[QueryNeighbors], measure: str) -> bytes:
    """Return the PNG. Labels equal to the query's are green.

    Raises: UserError: there are more queries than fit in a picture.
    """
    columns = 1 + max(len(sheet.features) for sheet in queries)
    height = 2 * len(queries) * (CELL + LINE_HEIGHT)
    check_height(height, f"{len(queries):,} images", "give fewer")
    figure = new_figure((columns + 0.9) * CELL, height)
    grid = image_grid(figure, 2 * len(queries), columns)
    figure.subplots_adjust(0.9 / (columns + 0.9), LINE_HEIGHT / height, 1, 1, 0.06, LINE_HEIGHT / CELL)
    for number, sheet in enumerate(queries):
        rows = (f"features\n{measure}", sheet.features), ("pixels\neuclidean", sheet.pixels)
        for row, (name, images) in zip(grid[2 * number : 2 * number + 2], rows, strict=True):
            row[0].text(-0.08, 0.5, name, transform=row[0].transAxes, ha="right", va="center", fontsize=8)
            for axes, image in zip(row[1:], images, strict=False):
                _plot_image(axes, image, answer_color(image.label, sheet.query.label or None))
        _plot_image(grid[2 * number, 0], sheet.query, "black")
    return figure_png(figure, THUMBNAIL_DPI)


def _plot_image(axes: "Axes", image: NeighborImage, color: str) -> None:
    show_pixels(axes, image.pixels)
    label_below(axes, cut_text(image.label, MAX_LABEL_LENGTH), color=color)
    if image.distance is not None:
        label_below(axes, f"{image.distance:.3g}", -0.17, MUTED_COLOR, 7.0)
