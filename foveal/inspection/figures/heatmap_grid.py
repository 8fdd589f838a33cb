"""Small maps in rows and columns, on one scale."""

from typing import TYPE_CHECKING

from foveal.inspection.figures.heatmap import draw_cells
from foveal.inspection.figures.text import MAX_NAME_LENGTH, drawable
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
    figure.suptitle(
        drawable(f"{title}{of_rows.name} down, {of_columns.name} across"),
        x=0.01,
        ha="left",
        fontsize=9,
        parse_math=False,
    )
    if image is not None:
        scale = figure.colorbar(image, ax=grid, shrink=0.6, aspect=30)
        scale.set_label(panel.array.unit, fontsize=8)
        scale.ax.tick_params(labelsize=7)
