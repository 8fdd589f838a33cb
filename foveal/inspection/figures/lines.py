"""Curves and points over common axes."""

from typing import TYPE_CHECKING, Any

from foveal.inspection.figures.text import (
    MAX_NAME_LENGTH,
    drawable,
    tick_label,
    write_axis_names,
    write_title,
)
from foveal.inspection.panels import Lines, Series
from foveal.inspection.style import series_color, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

LOOKS: dict[str, dict[str, Any]] = {
    "line": {"linewidth": 1.3},
    "dots": {"linewidth": 1.2, "marker": "o", "markersize": 3.5},
    "dotted": {"linewidth": 1.0, "linestyle": ":"},
    "faint": {"linewidth": 0.6, "alpha": 0.35},
    "points": {"linestyle": "", "marker": "o", "markersize": 3.5, "alpha": 0.7},
    "cloud": {"linestyle": "", "marker": "o", "markersize": 2.5, "alpha": 0.25, "markeredgewidth": 0},
    "ring": {"linestyle": "", "marker": "o", "markersize": 9, "fillstyle": "none"},
}
"""How the styles of series are drawn."""
WIDE = 6.0
"""Inches from which letters are larger, and the axes of panels below each other begin at one place."""
LABEL_PLACE = -0.1
"""The place of the label beside a wide panel, in widths of its axes."""
MILLION = 1e6
"""Matplotlib would write the power of ten of larger numbers beside the axis."""
FEW_DECADES = 50
"""The last value over the first up to which a logarithmic axis has three labels a decade."""
LEGEND_LETTER = 0.08
"""Inches of a letter in the legend."""
LONE_POINT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 3.5}
"""How a curve of a single point is drawn, which would not be seen as a line."""
KEY_LETTERS = 8
"""Letters as wide as the line before a name in the legend, and the gap after the name."""


def size(panel: Lines) -> tuple[float, float]:
    """Return width and height in inches."""
    return panel.size


def draw(figure: "SubFigure", panel: Lines) -> None:
    """Draw the curves. Positions of integers get ticks at integers."""
    axes = figure.subplots()
    large, small = (10.0, 9.0) if panel.size[0] >= WIDE else (8.0, 7.0)
    for series in panel.series:
        _draw_series(axes, series, small)
    _scale(axes, panel)
    if not any(len(series.x) for series in panel.series):
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center")
    write_title(axes, panel.title, panel.size[0])
    write_axis_names(axes, panel.x_label, panel.y_label, large)
    if panel.size[0] >= WIDE:
        axes.yaxis.set_label_coords(LABEL_PLACE, 0.5)
    axes.tick_params(which="both", labelsize=small)
    axes.grid(alpha=0.25)
    if panel.legend and len(panel.series) > 1:
        _write_legend(figure, axes, panel, small)


def _write_legend(figure: "SubFigure", axes: "Axes", panel: Lines, size: float) -> None:
    """Write the names of the series below the axes, in as many columns as there is room for."""
    letters = int(panel.size[0] / LEGEND_LETTER)
    names = [drawable(series.name, letters - KEY_LETTERS) for series in panel.series]
    columns = max(1, min(len(names), int(letters / (max(map(len, names)) + KEY_LETTERS))))
    look: dict[str, Any] = {"frameon": False, "prop": text_font(size), "ncols": columns}
    for text in figure.legend(axes.lines, names, loc="outside lower center", **look).get_texts():
        text.set_parse_math(False)


def _draw_series(axes: "Axes", series: Series, size: float) -> None:
    look = {"color": series_color(series.color)} | LOOKS[series.style]
    if len(series.x) == 1 and "marker" not in look:
        look |= LONE_POINT
    axes.plot(series.x, series.y, **look)
    if series.band is not None:
        axes.fill_between(series.x, *series.band, color=look["color"], alpha=0.15, linewidth=0)
    place: dict[str, Any] = {"textcoords": "offset points", "xytext": (3, 3), "parse_math": False}
    for x, y, text in zip(series.x, series.y, series.labels, strict=False):
        name = drawable(text, MAX_NAME_LENGTH)
        axes.annotate(name, (x, y), fontproperties=text_font(size), color=look["color"], **place)


def _scale(axes: "Axes", panel: Lines) -> None:
    """Set the scales. Without a positive value there is no logarithmic scale."""
    from matplotlib.ticker import MaxNLocator

    x = {position for series in panel.series for position in series.x}
    whole = all(float(position).is_integer() for position in x)
    if panel.log_x and any(position > 0 for position in x):
        axes.set_xscale("log")
        _mark_decades(axes.xaxis, *axes.get_xlim())
    elif whole:
        if len(x) == 1:
            axes.set_xlim(min(x) - 0.5, max(x) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if panel.log_y and any(value > 0 for series in panel.series for value in series.y):
        axes.set_yscale("log")
        _mark_decades(axes.yaxis, *axes.get_ylim())
    if panel.limits is not None:
        axes.set_ylim(*panel.limits)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "linear" and max(map(abs, axis.get_view_interval())) >= MILLION:
            axis.set_major_formatter(tick_label)
    if panel.equal:
        axes.set_aspect("equal", adjustable="datalim")


def _mark_decades(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis between two limits."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < FEW_DECADES * low else (1,)))
    axis.set_major_formatter(tick_label)
    axis.set_minor_formatter(NullFormatter())
