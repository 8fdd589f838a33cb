"""A payload as a picture in a file: PNG, SVG or PDF."""

import io
from typing import Any, NamedTuple, Protocol

from foveal.core.errors import UserError
from foveal.inspection.figures import (
    bars,
    colored_text,
    graph,
    heatmap,
    heatmap_grid,
    histograms,
    images,
    lines,
    table,
)
from foveal.inspection.figures.text import wrapped
from foveal.inspection.panels import (
    Bars,
    ColoredText,
    Graph,
    Heatmap,
    HeatmapGrid,
    Histograms,
    Images,
    Lines,
    Panel,
    Table,
)
from foveal.inspection.payload import Payload
from foveal.inspection.style import (
    DPI,
    MAX_HEIGHT,
    MUTED_COLOR,
    missing_letters_allowed,
    new_figure,
    text_font,
)

FORMATS = ("png", "svg", "pdf")
ROW_WIDTH, TITLE_LINE, CAVEAT_LINE = 9.6, 0.24, 0.14
"""Inches up to which panels stand side by side, and of lines of text."""
NO_DATE = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""The same payload is drawn as the same bytes."""
TEXT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42}
"""Text stays text: it can be searched, copied, and read aloud."""
THUMBNAIL_WIDTH = 480
"""Pixels."""


class _Renderer(Protocol):
    """A module of this package that draws a kind of panel."""

    def size(self, panel: Any) -> tuple[float, float]: ...

    def draw(self, figure: Any, panel: Any) -> None: ...


RENDERERS: dict[type, Any] = {
    Heatmap: heatmap,
    HeatmapGrid: heatmap_grid,
    Lines: lines,
    Histograms: histograms,
    Bars: bars,
    ColoredText: colored_text,
    Images: images,
    Graph: graph,
    Table: table,
}


class _Row(NamedTuple):
    """Panels side by side."""

    panels: list[Panel]
    widths: list[float]
    heights: list[float]


def draw_payload(payload: Payload, kind: str = "png", thumbnail: bool = False) -> bytes:
    """Return the content of a file of a kind of `FORMATS`. The caveat stands below the panels.

    Raises: UserError: the picture would be too tall.
    """
    import matplotlib

    rows = _rows(payload.drawn())
    width = max(4.8, *(sum(row.widths) for row in rows))
    title = wrapped(payload.title, int(width * 11))
    caveat = wrapped(f"{payload.exactness} numbers; {payload.caveat}", int(width * 18))
    heights = [max(row.heights) for row in rows]
    height = sum(heights) + TITLE_LINE * len(title) + CAVEAT_LINE * len(caveat) + 0.15
    if height > MAX_HEIGHT or width > MAX_HEIGHT:
        raise UserError(
            f"{payload.subject}: a picture of the view {payload.view} would be larger than {MAX_HEIGHT:.0f} "
            "inches; give fewer"
        )
    figure = new_figure(width, height, "constrained")
    look: dict[str, Any] = {"x": 0.01, "ha": "left", "parse_math": False}
    figure.suptitle("\n".join(title), fontproperties=text_font(11.0), **look)
    figure.supxlabel("\n".join(caveat), fontproperties=text_font(7.0), color=MUTED_COLOR, **look)
    parts = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, row in zip(parts, rows, strict=True):
        # Small maps keep their shape: beside them the row stays empty.
        rest = width - sum(row.widths) if isinstance(row.panels[-1], HeatmapGrid) else 0.0
        widths = [*row.widths, rest] if rest > 0.0 else row.widths
        sides = part.subfigures(1, len(widths), squeeze=False, width_ratios=widths)[0]
        for side, panel in zip(sides, row.panels, strict=False):
            RENDERERS[type(panel)].draw(side, panel)
    dpi = min(DPI, THUMBNAIL_WIDTH / width) if thumbnail else DPI
    content = io.BytesIO()
    with missing_letters_allowed(), matplotlib.rc_context(TEXT | {"svg.hashsalt": payload.view}):
        figure.savefig(content, format=kind, dpi=dpi, metadata=NO_DATE[kind])
    return content.getvalue()


def _rows(panels: list[Panel]) -> list[_Row]:
    """Return the panels in rows, in their order."""
    sizes = [RENDERERS[type(panel)].size(panel) for panel in panels]
    widest = max([ROW_WIDTH, *(width for width, _ in sizes)])
    rows: list[_Row] = []
    for panel, (width, height) in zip(panels, sizes, strict=True):
        if not rows or sum(rows[-1].widths) + width > widest:
            rows.append(_Row([], [], []))
        row = rows[-1]
        row.panels.append(panel)
        row.widths.append(width)
        row.heights.append(height)
    return rows
