"""A map of numbers: a row and a column of cells for each label, and the scale beside them."""

from typing import TYPE_CHECKING

from foveal.inspection.figures.text import MAX_NAME_LENGTH, drawable
from foveal.inspection.panels import Axis, Heatmap
from foveal.inspection.style import text_font

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

CELL, AROUND, SMALLEST = 0.42, 1.8, 4.2
"""Inches of a cell, of what stands around the cells, and of the smallest map."""


def size(panel: Heatmap) -> tuple[float, float]:
    """Return width and height in inches."""
    rows, columns = panel.array.values.shape
    return max(SMALLEST + 0.7, AROUND + 0.7 + CELL * columns), max(SMALLEST, AROUND + CELL * rows)


def draw(figure: "SubFigure", panel: Heatmap) -> None:
    """Draw the map. A dark cell is a large number."""
    axes = figure.subplots()
    values, span = panel.array.values, panel.high - panel.low
    image = axes.imshow(values, cmap="Blues", vmin=panel.low, vmax=panel.high)
    for row, texts in enumerate(panel.texts):
        for column, text in enumerate(texts):
            color = "white" if values[row, column] - panel.low > 0.5 * span else "black"
            axes.text(column, row, text, ha="center", va="center", size=7, color=color, parse_math=False)
    down, across = panel.array.axes
    axes.set_ylabel(down.name)
    axes.set_xlabel(across.name)
    (rows, columns), font = values.shape, text_font(8.0)
    axes.set_yticks(range(rows), _names(down, rows), parse_math=False, fontproperties=font)
    axes.set_xticks(
        range(columns), _names(across, columns), rotation=90, parse_math=False, fontproperties=font
    )
    axes.set_title(drawable(panel.title), loc="left", fontsize=9, parse_math=False)
    scale = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30)
    scale.set_label(panel.array.unit, fontsize=8)
    scale.ax.tick_params(labelsize=7)


def _names(axis: Axis, size: int) -> list[str]:
    return [drawable(label, MAX_NAME_LENGTH) for label in axis.labels] or [*map(str, range(size))]
