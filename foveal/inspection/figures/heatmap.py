"""A map of numbers: a row and a column of cells for each label, and the scale beside them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from foveal.inspection.figures.text import MAX_NAME_LENGTH, drawable
from foveal.inspection.panels import Axis, Heatmap
from foveal.inspection.style import DIVERGING_MAP, SEQUENTIAL_MAP, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

CELL, AROUND, SMALLEST, LARGEST = 0.42, 1.8, 4.2, 9.0
"""Inches of the largest cell, of what stands around the cells, and of the smallest and the largest map."""
LABEL = 0.13
"""Inches of a label at an axis: where cells are smaller, some labels are left away."""


def size(panel: Heatmap) -> tuple[float, float]:
    """Return width and height in inches."""
    rows, columns = panel.array.values.shape
    cell = min(CELL, LARGEST / max(rows, columns, 1))
    return max(SMALLEST, AROUND + cell * columns) + 0.7, max(SMALLEST, AROUND + cell * rows)


def draw(figure: "SubFigure", panel: Heatmap) -> None:
    """Draw the map. A dark cell is a large number. Where colors diverge, red is positive."""
    axes = figure.subplots()
    values, (rows, columns) = panel.array.values, panel.array.values.shape
    image = draw_cells(axes, values, panel.low, panel.high, panel.diverging)
    middle, reach = (0.0, panel.high) if panel.diverging else (panel.low, panel.high - panel.low)
    for row, texts in enumerate(panel.texts):
        for column, text in enumerate(texts):
            color = "white" if abs(values[row, column] - middle) > 0.5 * reach else "black"
            axes.text(column, row, text, ha="center", va="center", size=7, color=color, parse_math=False)
    down, across = panel.array.axes
    axes.set_ylabel(down.name)
    axes.set_xlabel(across.name)
    cell = min(CELL, LARGEST / max(rows, columns, 1))
    axes.set_yticks(**_ticks(down, rows, cell))
    axes.set_xticks(**_ticks(across, columns, cell), rotation=90)
    axes.set_title(drawable(panel.title), loc="left", fontsize=9, parse_math=False)
    scale = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30)
    scale.set_label(panel.array.unit, fontsize=8)
    scale.ax.tick_params(labelsize=7)


def draw_cells(axes: "Axes", values: Any, low: float, high: float, diverging: bool) -> Any:
    """Draw squares of color. Cells without a number are gray."""
    axes.set_facecolor("#d5dae0")
    colors = DIVERGING_MAP if diverging else SEQUENTIAL_MAP
    return axes.imshow(
        np.ma.masked_invalid(values), cmap=colors, vmin=low, vmax=high, interpolation="nearest", aspect="auto"
    )


def _ticks(axis: Axis, count: int, cell: float) -> dict[str, Any]:
    """Return positions and labels: as many as have room."""
    positions = range(0, count, max(1, int(np.ceil(LABEL / cell))))
    labels = axis.labels or [*map(str, range(count))]
    names = [drawable(labels[position], MAX_NAME_LENGTH) for position in positions]
    return {
        "ticks": positions,
        "labels": names,
        "parse_math": False,
        "fontproperties": text_font(8.0 if cell > 0.2 else 6.5),
    }
