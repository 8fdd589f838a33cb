"""A map of numbers: a row and a column of cells for each label, and the scale beside them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from foveal.inspection.figures.text import (
    MAX_NAME_LENGTH,
    drawable,
    write_axis_names,
    write_title,
    write_unit,
)
from foveal.inspection.panels import Axis, Heatmap
from foveal.inspection.style import DIVERGING_MAP, HIGHLIGHT_COLOR, SEQUENTIAL_MAP, letters_on, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

CELL, AROUND, SMALLEST, LARGEST = 0.42, 1.8, 4.2, 9.0
"""Inches of the largest cell, of what stands around the cells, and of the smallest and the largest map."""
NO_NUMBER = "#d5dae0"
"""The color of cells without a number."""
LABEL = 0.13
"""Inches of a label at an axis: where cells are smaller, some labels are left away."""
LETTER, MAX_CELL_TEXT = 0.075, 14
"""Inches of a letter in a cell, and letters at most: a cell is as wide as its text."""


def size(panel: Heatmap) -> tuple[float, float]:
    """Return width and height in inches."""
    rows, columns = panel.array.values.shape
    cell = min(CELL, LARGEST / max(rows, columns, 1))
    letters = min(MAX_CELL_TEXT, max((len(text) for row in panel.texts for text in row), default=0))
    width = max(cell, LETTER * letters)
    return max(SMALLEST, AROUND + width * columns) + 0.7, max(SMALLEST, AROUND + cell * rows)


def draw(figure: "SubFigure", panel: Heatmap) -> None:
    """Draw the map. A dark cell is a large number. Where colors diverge, red is positive."""
    from matplotlib.colors import to_rgb

    axes = figure.subplots()
    values, (rows, columns) = panel.array.values, panel.array.values.shape
    image = draw_cells(axes, values, panel.low, panel.high, panel.diverging)
    look: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    look["fontproperties"] = text_font(7.0)
    for row, texts in enumerate(panel.texts):
        for column, text in enumerate(texts):
            value = values[row, column]
            fill = image.to_rgba(value) if np.isfinite(value) else to_rgb(NO_NUMBER)
            color = letters_on(np.array(fill))
            axes.text(column, row, drawable(text, MAX_CELL_TEXT), color=color, **look)
    for row, column in panel.marks:
        axes.add_patch(_frame(row, column))
    down, across = panel.array.axes
    write_axis_names(axes, across.name, down.name, 10.0)
    cell = min(CELL, LARGEST / max(rows, columns, 1))
    axes.set_yticks(**_ticks(down, rows, cell))
    axes.set_xticks(**_ticks(across, columns, cell), rotation=90)
    write_title(axes, panel.title, size(panel)[0])
    write_unit(figure.colorbar(image, ax=axes, shrink=0.6, aspect=30), panel.array.unit)


def draw_cells(axes: "Axes", values: Any, low: float, high: float, diverging: bool) -> Any:
    """Draw squares of color. Cells without a number are gray."""
    axes.set_facecolor(NO_NUMBER)
    colors = DIVERGING_MAP if diverging else SEQUENTIAL_MAP
    return axes.imshow(
        np.ma.masked_invalid(values), cmap=colors, vmin=low, vmax=high, interpolation="nearest", aspect="auto"
    )


def _frame(row: int, column: int) -> Any:
    """Return the frame of a marked cell."""
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=HIGHLIGHT_COLOR, linewidth=1.5)


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
