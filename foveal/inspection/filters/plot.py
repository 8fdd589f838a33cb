"""Filters as images, all on the same scale: gray is 0."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from foveal.inspection.filters.compute import Filters
from foveal.inspection.style import figure_png, label_below, new_figure

MAX_FILTERS, GAP = 144, 1
"""Most filters that are drawn, those of the largest norms; and pixels between two filters."""
FIGURE_WIDTH, TITLE_HEIGHT, LABEL_HEIGHT = 7.2, 0.3, 0.22
"""Inches of the picture, of its title, and of the label below a template."""
CLIPPED_FRACTION = 0.001
"""The share of the weights that are beyond the scale: black or white."""


def weight_scale(filters: Filters) -> float:
    """Return the weight that is drawn white; its negative is drawn black. Return 1 if all weights are 0."""
    return float(np.quantile(np.abs(filters.weights), 1 - CLIPPED_FRACTION)) or 1.0


def select_filters(filters: Filters, labels: Sequence[str] | None) -> list[int]:
    """Return the indices of the filters to draw: class templates in the order of the classes, other filters
    by norm."""
    if labels is not None:
        return [*range(min(MAX_FILTERS, len(labels)))]
    return np.argsort(-filters.norms, kind="stable")[:MAX_FILTERS].tolist()


def filter_images(filters: Filters) -> Float[np.ndarray, "N H W 3"]:
    """Return each filter as RGB values from 0 to 1, with its frames side by side.

    A filter that does not have three channels is gray, the mean over its channels.
    """
    levels = np.clip(0.5 + 0.5 * filters.weights / weight_scale(filters), 0, 1)
    if levels.shape[1] != 3:
        levels = levels.mean(1, keepdims=True).repeat(3, 1)
    N, _, T, H, W = levels.shape
    images: Float[np.ndarray, "N H W 3"] = levels.transpose(0, 3, 2, 4, 1).reshape(N, H, T * W, 3)
    return images


def plot_filters(filters: Filters, labels: Sequence[str] | None, title: str) -> bytes:
    """Return the PNG. The classes' `labels` are written below their templates."""
    numbers = select_filters(filters, labels)
    tiles = filter_images(filters)[numbers]
    N, H, W, _ = tiles.shape
    columns = min(N, max(1, round((N * H / W) ** 0.5)) if labels is None else 5)
    tile_height = FIGURE_WIDTH / columns * H / W
    row_height = tile_height + (0.0 if labels is None else LABEL_HEIGHT)
    height = TITLE_HEIGHT + -(-N // columns) * row_height
    figure = new_figure(FIGURE_WIDTH, height)
    figure.suptitle(title, fontsize=8, x=0.01, y=1 - 0.08 / height, ha="left", va="top")
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        left, bottom = column / columns, (height - TITLE_HEIGHT - row * row_height - tile_height) / height
        size = 1 / columns - 0.006, tile_height / height - 0.006
        axes = figure.add_axes((left + 0.003, bottom + 0.003, *size))
        axes.imshow(tile, interpolation="nearest", aspect="auto")
        axes.set_axis_off()
        if labels is not None:
            label_below(axes, labels[numbers[index]])
    return figure_png(figure)
