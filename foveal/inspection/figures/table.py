"""A table of texts, in letters of equal width."""

from typing import TYPE_CHECKING, Any

from foveal.inspection.figures.text import drawable, write_title
from foveal.inspection.panels import Table
from foveal.metrics.report import format_table

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

LETTER, LINE, MAX_CELL = 0.078, 0.17, 40
"""Inches of a letter and of a line; letters in a cell."""


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
    rows = [[drawable(cell, MAX_CELL) for cell in row] for row in (panel.columns, *panel.rows)]
    return format_table(rows).splitlines()
