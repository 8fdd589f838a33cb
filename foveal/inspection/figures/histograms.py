"""Histograms side by side, on the same axis; one alone has numbers at both of its axes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from foveal.inspection.figures.text import drawable, tick_label, write_axis_names, write_title
from foveal.inspection.panels import Histogram, Histograms
from foveal.inspection.style import MUTED_COLOR, series_color, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

WIDTH, HEIGHT, SMALLEST = 1.3, 1.5, 9.3
"""Inches of a histogram, and the smallest width of all of them."""
ALONE = (6.4, 3.0)
"""Inches of a histogram that is alone."""
MAX_NAME, MAX_NOTE = 18, 12
"""Letters of the name of a histogram, and of the note in it."""
MAX_TICKS = 2
"""Intervals between the numbers below a histogram: more of them would touch."""


def size(panel: Histograms) -> tuple[float, float]:
    """Return width and height in inches."""
    if len(panel.histograms) == 1:
        return ALONE
    return max(SMALLEST, WIDTH * len(panel.histograms)), HEIGHT


def draw(figure: "SubFigure", panel: Histograms) -> None:
    """Draw the histograms. A bin that is cut off ends above the others."""
    if len(panel.histograms) == 1:
        _draw_alone(figure.subplots(), panel, panel.histograms[0])
    else:
        _draw_row(figure, panel)


def _draw_alone(axes: "Axes", panel: Histograms, histogram: Histogram) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    _draw_bins(axes, panel, histogram)
    if panel.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(tick_label)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    write_title(axes, panel.title, ALONE[0])
    write_axis_names(axes, panel.x_label or histogram.name, panel.y_label or "count")
    axes.tick_params(which="both", labelsize=7)
    axes.grid(alpha=0.25, axis="y")


def _draw_row(figure: "SubFigure", panel: Histograms) -> None:
    from matplotlib.ticker import MaxNLocator

    row = figure.subplots(1, max(1, len(panel.histograms)), squeeze=False)[0]
    color = series_color(panel.color)
    look: dict[str, Any] = {"fontproperties": text_font(9.0), "color": color, "parse_math": False}
    row[0].set_ylabel(drawable(panel.title, MAX_NAME), **look)
    for axes, histogram in zip(row, panel.histograms, strict=False):
        _draw_bins(axes, panel, histogram)
        name = drawable(histogram.name, MAX_NAME)
        axes.set_title(name, fontproperties=text_font(8.0), color=MUTED_COLOR, parse_math=False)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(MAX_TICKS))
        axes.xaxis.set_major_formatter(tick_label)
        axes.tick_params(labelsize=6, length=2)
        axes.spines[["top", "left", "right"]].set_visible(False)


def _draw_bins(axes: "Axes", panel: Histograms, histogram: Histogram) -> None:
    widths = np.diff(panel.edges)
    look: dict[str, Any] = {"align": "edge", "color": series_color(panel.color)}
    axes.bar(panel.edges[:-1], np.array(histogram.counts, float), np.where(widths > 0, widths, 1.0), **look)
    axes.set_ylim(0, _height(histogram))
    note: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "top", "size": 7}
    axes.text(0.96, 0.95, drawable(histogram.note, MAX_NOTE), parse_math=False, **note)


def _height(histogram: Histogram) -> float | None:
    """Return the end of the axis of counts; None if it is that of the tallest bin."""
    if histogram.cut is None:
        return None
    return 1.3 * float(np.delete(histogram.counts, histogram.cut).max()) or None
