"""Filters as pictures, all on one scale: grey is 0."""

import io
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from foveal.inspection.filters.compute import Filters

MAX_FILTERS, GAP = 144, 1
"""Filters that are drawn, those of the largest norms; and pixels between them."""
FIGURE_WIDTH, LABEL_HEIGHT = 7.2, 0.22
"""Inches of the picture, and of the label below a template."""
CLIPPED_FRACTION = 0.001
"""This share of the weights is beyond the scale: black or white."""


def weight_scale(filters: Filters) -> float:
    """The weight that is drawn white, and its opposite black; 1 if all are 0."""
    return float(np.quantile(np.abs(filters.weights), 1 - CLIPPED_FRACTION)) or 1.0


def select_filters(filters: Filters, labels: Sequence[str] | None) -> list[int]:
    """Which are drawn, in this order: classes as they come, others by their norms."""
    if labels is not None:
        return [*range(min(MAX_FILTERS, len(labels)))]
    return np.argsort(-filters.norms, kind="stable")[:MAX_FILTERS].tolist()


def filter_images(filters: Filters) -> Float[np.ndarray, "N H W 3"]:
    """Each as colours of 0 to 1, frames side by side. What has not three channels is grey: their mean."""
    levels = np.clip(0.5 + 0.5 * filters.weights / weight_scale(filters), 0, 1)
    if levels.shape[1] != 3:
        levels = levels.mean(1, keepdims=True).repeat(3, 1)
    N, _, T, H, W = levels.shape
    found: Float[np.ndarray, "N H W 3"] = levels.transpose(0, 3, 2, 4, 1).reshape(N, H, T * W, 3)
    return found


def plot_filters(filters: Filters, labels: Sequence[str] | None, title: str) -> bytes:
    """The PNG's content; with the classes' `labels` below their templates."""
    from matplotlib.figure import Figure

    chosen = select_filters(filters, labels)
    some = filter_images(filters)[chosen]
    N, H, W, _ = some.shape
    columns = min(N, max(1, round((N * H / W) ** 0.5)) if labels is None else 5)
    rows = -(-N // columns)
    inch = FIGURE_WIDTH / columns
    below = 0.0 if labels is None else LABEL_HEIGHT
    figure = Figure(figsize=(FIGURE_WIDTH, 0.3 + rows * (inch * H / W + below)))
    figure.suptitle(title, fontsize=8, x=0.01, y=1 - 0.08 / figure.get_figheight(), ha="left", va="top")
    high, tall = figure.get_figheight(), inch * H / W
    for place, tile in enumerate(some):
        down, across = divmod(place, columns)
        bottom = high - 0.3 - down * (tall + below) - tall
        axes = figure.add_axes(
            (across / columns + 0.003, bottom / high + 0.003, 1 / columns - 0.006, tall / high - 0.006)
        )
        axes.imshow(tile, interpolation="nearest", aspect="auto")
        axes.set_axis_off()
        if labels is not None:
            label = labels[chosen[place]]
            axes.text(0.5, -0.03, label, transform=axes.transAxes, ha="center", va="top", fontsize=8)
    content = io.BytesIO()
    figure.savefig(content, dpi=130)
    return content.getvalue()
