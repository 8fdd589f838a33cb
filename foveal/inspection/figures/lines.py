"""Curves over a common axis."""

from typing import TYPE_CHECKING, Any

from foveal.inspection.figures.text import MAX_NAME_LENGTH, drawable
from foveal.inspection.panels import Lines
from foveal.inspection.style import FAINT_COLOR, series_color, text_font

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

LOOKS: dict[str, dict[str, Any]] = {
    "line": {"linewidth": 1.3},
    "dots": {"linewidth": 1.2, "marker": "o", "markersize": 3.5},
    "dotted": {"linewidth": 0.8, "linestyle": ":"},
    "faint": {"linewidth": 0.6, "color": FAINT_COLOR},
}
"""How the styles of series are drawn."""
WIDE = 6.0
"""Inches from which letters are larger."""


def size(panel: Lines) -> tuple[float, float]:
    """Return width and height in inches."""
    return panel.size


def draw(figure: "SubFigure", panel: Lines) -> None:
    """Draw the curves. Positions of integers get ticks at integers."""
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots()
    large, small = (10, 9) if panel.size[0] >= WIDE else (8, 7)
    for series in panel.series:
        look = {"color": series_color(series.color)} | LOOKS[series.style]
        axes.plot(series.x, series.y, label=drawable(series.name, MAX_NAME_LENGTH), **look)
    for note in panel.notes:
        color = series_color(note.color)
        axes.annotate(
            note.text,
            (note.x, note.y),
            xytext=(-8, 36),
            textcoords="offset points",
            ha="right",
            arrowprops={"arrowstyle": "-", "color": color},
            parse_math=False,
        )
    if panel.log_y:
        axes.set_yscale("log")
    if panel.limits is not None:
        axes.set_ylim(*panel.limits)
    if not any(len(series.x) for series in panel.series):
        axes.text(0.5, 0.5, "no steps", transform=axes.transAxes, ha="center")
    axes.set_title(drawable(panel.title), loc="left", fontsize=9, parse_math=False)
    axes.set_xlabel(panel.x_label, fontsize=large)
    axes.set_ylabel(panel.y_label, fontsize=large)
    axes.tick_params(labelsize=small)
    axes.grid(alpha=0.25)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.legend and len(panel.series) > 1:
        for text in axes.legend(frameon=False, prop=text_font(small)).get_texts():
            text.set_parse_math(False)
