"""Queries and their nearest images as a PNG: on the left a query, then what is nearest by features; in the
row below what is nearest by pixels."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.core.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL, LINE_HEIGHT, MAX_HEIGHT = 1.1, 0.34, 200.0
"""Inches of an image's side, of the two lines below it, and of the whole picture."""
CORRECT_COLOR, INCORRECT_COLOR, MUTED_COLOR = "#15803d", "#b45309", "#52606d"


class NeighborImage(NamedTuple):
    """An image with the lines below it."""

    pixels: UInt8[np.ndarray, "H W C"]
    label: str
    distance: float | None = None
    """None for a query, whose label may be unknown, empty."""


class QueryNeighbors(NamedTuple):
    """A query, and the nearest to it, nearest first."""

    query: NeighborImage
    features: Sequence[NeighborImage]
    pixels: Sequence[NeighborImage]


def plot_neighbors(queries: Sequence[QueryNeighbors], measure: str) -> bytes:
    """The PNG's content; a label like the query's is green. UserError for more than fits a picture."""
    from matplotlib.figure import Figure

    columns, height = 1 + max(len(sheet.features) for sheet in queries), CELL + LINE_HEIGHT
    if 2 * len(queries) * height > MAX_HEIGHT:
        raise UserError(
            f"a picture of {len(queries):,} images would be taller than {MAX_HEIGHT:.0f} inches; give fewer"
        )
    figure = Figure(figsize=((columns + 0.9) * CELL, 2 * len(queries) * height))
    grid = figure.subplots(2 * len(queries), columns, squeeze=False)
    figure.subplots_adjust(
        0.9 / (columns + 0.9), LINE_HEIGHT / figure.get_figheight(), 1, 1, 0.06, LINE_HEIGHT / CELL
    )
    for axes in grid.flat:
        axes.set_axis_off()
    for number, sheet in enumerate(queries):
        rows = (f"features\n{measure}", sheet.features), ("pixels\neuclidean", sheet.pixels)
        for row, (name, found) in zip(grid[2 * number : 2 * number + 2], rows, strict=True):
            row[0].text(-0.08, 0.5, name, transform=row[0].transAxes, ha="right", va="center", fontsize=8)
            for axes, shown in zip(row[1:], found, strict=False):
                known = CORRECT_COLOR if shown.label == sheet.query.label else INCORRECT_COLOR
                _plot_image(axes, shown, known if sheet.query.label else MUTED_COLOR)
        _plot_image(grid[2 * number, 0], sheet.query, "black")
    content = io.BytesIO()
    figure.savefig(content, dpi=110)
    return content.getvalue()


def _plot_image(axes: "Axes", image: NeighborImage, color: str) -> None:
    pixels = image.pixels
    grey = pixels.shape[-1] == 1
    axes.imshow(pixels[..., 0] if grey else pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    below: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "top"}
    axes.text(0.5, -0.03, image.label, color=color, fontsize=8, parse_math=False, **below)
    if image.distance is not None:
        axes.text(0.5, -0.17, f"{image.distance:.3g}", color=MUTED_COLOR, fontsize=7, **below)
