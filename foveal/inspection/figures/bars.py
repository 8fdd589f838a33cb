"""Bars side by side, for each position of an axis."""

from typing import TYPE_CHECKING

import numpy as np

from foveal.inspection.figures.text import MAX_NAME_LENGTH, drawable, write_axis_names, write_title
from foveal.inspection.panels import Bars
from foveal.inspection.style import series_color, text_font

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

WIDTH, HEIGHT, POSITION = 3.1, 3.0, 0.16
"""Inches of the smallest figure, and of a position with a label."""


def size(panel: Bars) -> tuple[float, float]:
    """Return width and height in inches."""
    return max(WIDTH, POSITION * len(panel.array.axes[1].labels)), HEIGHT


def draw(figure: "SubFigure", panel: Bars) -> None:
    """Draw the bars, in a color for each series. Positions without labels are numbered from 1."""
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots()
    (count, positions), (_, axis) = panel.array.values.shape, panel.array.axes
    width, start = 0.8 / max(1, count), 0 if axis.labels else 1
    for number, values in enumerate(panel.array.values):
        x = np.arange(positions) + start - 0.4 + width * (number + 0.5)
        axes.bar(x, np.where(np.isfinite(values), values, 0.0), width, color=series_color(number))
    if axis.labels:
        labels = [drawable(label, MAX_NAME_LENGTH) for label in axis.labels]
        axes.set_xticks(
            range(positions), labels, rotation=90, parse_math=False, fontproperties=text_font(7.0)
        )
    else:
        axes.set_xlim(0.5, positions + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if count > 1 and (names := panel.array.axes[0].labels):
        shown = [drawable(name, MAX_NAME_LENGTH) for name in names]
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": count}
        axes.legend(shown, prop=text_font(7.0), frameon=False, **place)
    if panel.high is not None:
        axes.set_ylim(0, panel.high)
    write_title(axes, panel.title, size(panel)[0])
    write_axis_names(axes, axis.name, panel.array.unit)
    axes.tick_params(which="both", labelsize=7)
    axes.grid(alpha=0.25, axis="y")
