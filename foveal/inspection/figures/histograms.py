"""Histograms side by side, on the same axis."""

from typing import TYPE_CHECKING, Any

import numpy as np

from foveal.inspection.figures.text import drawable, tick_label
from foveal.inspection.panels import Histogram, Histograms
from foveal.inspection.style import MUTED_COLOR, series_color, text_font

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

WIDTH, HEIGHT, SMALLEST = 1.3, 1.5, 9.3
"""Inches of a histogram, and the smallest width of all of them."""
MAX_NAME, MAX_NOTE = 18, 12
"""Letters of the name of a histogram, and of the note in it."""
MAX_TICKS = 2
"""Intervals between the numbers below a histogram: more of them would touch."""


def size(panel: Histograms) -> tuple[float, float]:
    """Return width and height in inches."""
    return max(SMALLEST, WIDTH * len(panel.histograms)), HEIGHT


def draw(figure: "SubFigure", panel: Histograms) -> None:
    """Draw the histograms. A bin that is cut off ends above the others."""
    from matplotlib.ticker import MaxNLocator

    row = figure.subplots(1, max(1, len(panel.histograms)), squeeze=False)[0]
    color = series_color(panel.color)
    look: dict[str, Any] = {"fontproperties": text_font(9.0), "color": color, "parse_math": False}
    row[0].set_ylabel(drawable(panel.title, MAX_NAME), **look)
    for axes, histogram in zip(row, panel.histograms, strict=False):
        counts = np.array(histogram.counts, float)
        axes.bar(panel.edges[:-1], counts, np.diff(panel.edges).max() or 1.0, align="edge", color=color)
        axes.set_ylim(0, _height(histogram))
        note = {"transform": axes.transAxes, "ha": "right", "va": "top", "size": 7}
        axes.text(0.96, 0.95, drawable(histogram.note, MAX_NOTE), parse_math=False, **note)
        name = drawable(histogram.name, MAX_NAME)
        axes.set_title(name, fontproperties=text_font(8.0), color=MUTED_COLOR, parse_math=False)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(MAX_TICKS))
        axes.xaxis.set_major_formatter(tick_label)
        axes.tick_params(labelsize=6, length=2)
        axes.spines[["top", "left", "right"]].set_visible(False)


def _height(histogram: Histogram) -> float | None:
    """Return the end of the axis of counts; None if it is that of the tallest bin."""
    if histogram.cut is None:
        return None
    return 1.3 * float(np.delete(histogram.counts, histogram.cut).max()) or None
