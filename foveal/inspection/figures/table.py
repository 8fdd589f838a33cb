"""A table of texts, in letters of equal width."""

from typing import TYPE_CHECKING, Any

from foveal.inspection.figures.text import drawable, write_title
from foveal.inspection.panels import Table
from foveal.metrics.report import format_table

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

LETTER, LINE, MAX_CELL = 0.078, 0.135, 40
"""Inches of a letter and of a line; letters of a cell of one line."""
MAX_CELL_LINES, MAX_CELL_LINE = 6, 80
"""Lines of a cell that has several, and letters of each."""


def size(panel: Table) -> tuple[float, float]:
    """Return width and height in inches."""
    lines = _lines(panel)
    return max(3.0, LETTER * max(map(len, lines)) + 0.3), LINE * (len(lines) + 2)


def draw(figure: "SubFigure", panel: Table) -> None:
    """Write the table."""
    axes = figure.subplots()
    axes.set_axis_off()
    write_title(axes, panel.title, size(panel)[0])
    look: dict[str, Any] = {"family": "monospace", "size": 8, "va": "top", "parse_math": False}
    axes.text(0, 1, "\n".join(_lines(panel)), transform=axes.transAxes, **look)


def _lines(panel: Table) -> list[str]:
    rows = [[_cell(cell) for cell in row] for row in (panel.columns, *panel.rows)]
    return format_table(rows).splitlines()


def _cell(text: str) -> str:
    """Return a text cut to the room of a cell. Line breaks are kept."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) <= 1:
        return drawable(text, MAX_CELL)
    more = ["…"] if len(lines) > MAX_CELL_LINES else []
    return "\n".join([*(drawable(line, MAX_CELL_LINE) for line in lines[:MAX_CELL_LINES]), *more])
