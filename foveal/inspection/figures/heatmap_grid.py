"""Small maps in rows and columns, on one scale."""

from typing import TYPE_CHECKING, Any

from foveal.inspection.figures.heatmap import draw_cells
from foveal.inspection.figures.text import (
    MAX_NAME_LENGTH,
    MAX_TITLE_LINES,
    TITLE_LETTER,
    drawable,
    wrapped,
    write_unit,
)
from foveal.inspection.panels import HeatmapGrid
from foveal.inspection.style import text_font

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

MAP, AROUND = 1.05, 0.9
"""Inches of a map, and of what stands around all of them."""


def size(panel: HeatmapGrid) -> tuple[float, float]:
    """Return width and height in inches."""
    rows, columns, *_ = panel.array.values.shape
    return max(4.0, MAP * columns + AROUND), MAP * rows + AROUND


def draw(figure: "SubFigure", panel: HeatmapGrid) -> None:
    """Draw the maps. The names of rows stand at the left, those of columns above."""
    rows, columns, *_ = panel.array.values.shape
    grid = figure.subplots(rows, columns, squeeze=False)
    down, across, of_rows, of_columns = panel.array.axes
    image = None
    for row in range(rows):
        for column in range(columns):
            axes = grid[row, column]
            image = draw_cells(axes, panel.array.values[row, column], panel.low, panel.high, panel.diverging)
            axes.set_xticks([])
            axes.set_yticks([])
    for column, axes in enumerate(grid[0] if rows else []):
        name = drawable(
            across.labels[column] if across.labels else f"{across.name} {column}", MAX_NAME_LENGTH
        )
        axes.set_title(name, fontproperties=text_font(7.5), parse_math=False)
    for row, axes in enumerate(grid[:, 0] if columns else []):
        name = drawable(down.labels[row] if down.labels else f"{down.name} {row}", MAX_NAME_LENGTH)
        axes.set_ylabel(name, fontproperties=text_font(7.5), parse_math=False)
    title = f"{panel.title}, " if panel.title else ""
    lines = wrapped(
        f"{title}{of_rows.name} down, {of_columns.name} across", int(size(panel)[0] / TITLE_LETTER)
    )
    look: dict[str, Any] = {"x": 0.01, "ha": "left", "fontproperties": text_font(9.0), "parse_math": False}
    figure.suptitle("\n".join(lines[:MAX_TITLE_LINES]), **look)
    if image is not None:
        write_unit(figure.colorbar(image, ax=grid, shrink=0.6, aspect=30), panel.array.unit)
