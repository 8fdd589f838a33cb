"""Rows of images with captions below them and marks over them, on one pair of axes in inches."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from foveal.inspection.figures.text import drawable, wrapped, write_title
from foveal.inspection.panels import Caption, ImageRow, Images, Mark, Tile
from foveal.inspection.style import ROLE_COLORS, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

LINE, LETTER, NAME_WIDTH = 0.155, 0.062, 0.85
"""Inches of a line of a caption, of a letter, and of the names of rows."""
SLACK = 0.15
"""Inches beside the images, so that their height decides how large images of several panels are drawn."""
FONT_SIZE, MAX_LINES = 8.0, 6
"""Points of captions; and lines of a caption below a whole row."""
HEAT_MAP, HEAT_OPACITY = "inferno", 0.6
"""The colors of numbers over an image, and how much they cover."""
MARKERS = {"dot": "o", "cross": "x", "star": "*"}


class _Grid(NamedTuple):
    """The places of the images, in inches from the upper left."""

    left: float
    width: float
    tops: list[float]
    heights: list[float]
    """The heights of the images of each row, without captions."""
    captions: list[list[Caption]]
    """The lines below each row."""
    height: float


def size(panel: Images) -> tuple[float, float]:
    """Return width and height in inches."""
    grid = _grid(panel)
    return grid.width + SLACK, grid.height + (0.28 if panel.title else 0.05)


def draw(figure: "SubFigure", panel: Images) -> None:
    """Draw the images without interpolation. A single channel is gray."""
    grid = _grid(panel)
    axes = figure.subplots()
    axes.set_axis_off()
    for row, top, height, captions in zip(panel.rows, grid.tops, grid.heights, grid.captions, strict=True):
        _draw_name(axes, row, grid.left, top + height / 2)
        for number, tile in enumerate(row.tiles):
            if tile is not None:
                _draw_tile(axes, tile, grid.left + number * (panel.tile_size + panel.gap), top, panel)
        lines = (LINE * max((len(tile.captions) for tile in row.tiles if tile), default=0)) + top + height
        for number, caption in enumerate(captions):
            _write(axes, grid.left, lines + number * LINE, caption, "left", caption.text)
    axes.set(xlim=(0, grid.width), ylim=(grid.height, 0), aspect="equal", anchor="NW")
    write_title(axes, panel.title, grid.width)


def _grid(panel: Images) -> _Grid:
    """Return the places of a panel's images."""
    left = NAME_WIDTH if any(row.name for row in panel.rows) else 0.0
    columns = max((len(row.tiles) for row in panel.rows), default=1)
    width = left + max(1, columns) * (panel.tile_size + panel.gap)
    tops, heights, captions, y = [], [], [], 0.0
    for row in panel.rows:
        lines = [
            Caption(line, caption.role)
            for caption in row.captions
            for line in wrapped(caption.text, int((width - left) / LETTER))[:MAX_LINES]
        ]
        tops.append(y)
        heights.append(
            max((_scale(tile, panel) * len(tile.pixels) for tile in row.tiles if tile), default=0.0)
        )
        captions.append(lines)
        below = max((len(tile.captions) for tile in row.tiles if tile), default=0)
        y += heights[-1] + LINE * (below + len(lines)) + panel.gap + (0.04 if below or lines else 0)
    return _Grid(left, width, tops, heights, captions, y)


def _scale(tile: Tile, panel: Images) -> float:
    """Return the inches of a pixel."""
    return panel.tile_size / max(tile.pixels.shape[:2])


def _draw_name(axes: "Axes", row: ImageRow, left: float, middle: float) -> None:
    lines = "\n".join(drawable(line, int(NAME_WIDTH / LETTER)) for line in row.name.split("\n"))
    font = text_font(FONT_SIZE)
    axes.text(left - 0.08, middle, lines, ha="right", va="center", fontproperties=font, parse_math=False)


def _draw_tile(axes: "Axes", tile: Tile, left: float, top: float, panel: Images) -> None:
    from matplotlib.patches import Rectangle

    scale = _scale(tile, panel)
    rows, columns, channels = tile.pixels.shape
    height, width = scale * rows, scale * columns
    pixels = tile.pixels[..., 0] if channels == 1 else tile.pixels
    extent = (left, left + width, top + height, top)
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest", extent=extent)
    if tile.heat is not None:
        heat: dict[str, Any] = {"cmap": HEAT_MAP, "vmin": 0, "vmax": 1, "alpha": HEAT_OPACITY}
        axes.imshow(tile.heat, interpolation="nearest", extent=extent, **heat)
    frame = Rectangle((left, top), width, height, transform=axes.transData)
    for mark in tile.marks:
        _draw_mark(axes, mark, np.array([left, top]), scale, frame)
    for number, caption in enumerate(tile.captions):
        text = drawable(caption.text, int(panel.tile_size / LETTER))
        _write(axes, left + width / 2, top + height + number * LINE, caption, "center", text)


def _write(axes: "Axes", x: float, y: float, caption: Caption, side: str, text: str) -> None:
    look: dict[str, Any] = {"ha": side, "va": "top", "color": ROLE_COLORS[caption.role]}
    axes.text(x, y + 0.03, text, fontproperties=text_font(FONT_SIZE), parse_math=False, **look)


def _draw_mark(axes: "Axes", mark: Mark, corner: Any, scale: float, frame: Any) -> None:
    """Draw a line over an image, cut off at the image's frame."""
    points = corner + scale * (mark.points[:, ::-1] + 0.5)
    color = ROLE_COLORS[mark.role]
    artists: list[Any] = []
    if mark.end == "arrow":
        arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": color, "linewidth": 2}
        artists.append(axes.annotate("", tuple(points[-1]), tuple(points[0]), arrowprops=arrow))
    else:
        line = np.concatenate([points, points[:1]]) if mark.closed else points
        look: dict[str, Any] = {"linestyle": ":" if mark.dotted else "-"}
        look["alpha"] = 0.4 if mark.closed else 0.9
        artists += axes.plot(*line.T, color=color, linewidth=1 if mark.closed or mark.dotted else 1.6, **look)
    if mark.end in MARKERS:
        side = 10 if mark.end == "star" else 6
        artists += axes.plot(*points[-1], marker=MARKERS[mark.end], color=color, markersize=side)
    if mark.numbered:
        place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "clip_on": True}
        for number, (x, y) in enumerate(points, 1):
            artists.append(axes.text(x, y, str(number), color=color, **place))
    for artist in artists:
        artist.set_clip_path(frame)
