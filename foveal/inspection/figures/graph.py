"""Boxes joined by arrows."""

from typing import TYPE_CHECKING, Any

from foveal.inspection.figures.text import drawable, write_title
from foveal.inspection.panels import Graph, Node
from foveal.inspection.style import EDGE_COLOR, MUTED_COLOR, ROLE_COLORS, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

LETTER, LINE, GAP, ROW_GAP = 0.075, 0.16, 0.35, 0.3
"""Inches of a letter and a line, and between boxes."""
CIRCLE = 0.3
"""Inches of a circle."""
BELOW_BOXES = 0.5
"""The order of a line that boxes hide."""
EDGE_ROLE_COLORS = {"plain": MUTED_COLOR, "muted": EDGE_COLOR}
"""The colors of arrows that are lighter than the letters of boxes of their role."""
MAX_LETTERS = 34
"""Letters of a line in a box."""


def size(panel: Graph) -> tuple[float, float]:
    """Return width and height in inches."""
    width, height = _cell(panel)
    columns = 1 + max((node.place[0] for node in panel.nodes), default=0)
    places = {node.name: node.place[0] for node in panel.nodes}
    ends = [(max(places[edge.source], places[edge.target]), edge.bend) for edge in panel.edges if edge.bend]
    columns = max([columns, *(0.6 + column + bend for column, bend in ends)])
    rows = 1 + max((node.place[1] for node in panel.nodes), default=0)
    return max(3.0, columns * width + 0.2), rows * height + 0.4


def draw(figure: "SubFigure", panel: Graph) -> None:
    """Draw the boxes and arrows."""
    axes = figure.subplots()
    axes.set_axis_off()
    width, height = _cell(panel)
    places: dict[str, tuple[float, float]] = {}
    boxes: dict[str, Any] = {}
    for node in panel.nodes:
        column, row = node.place
        places[node.name] = (column + 0.5) * width, (row + 0.5) * height
        boxes[node.name] = _draw_node(axes, node, places[node.name], panel)
    for edge in panel.edges:
        start, end = places[edge.source], places[edge.target]
        color = EDGE_ROLE_COLORS.get(edge.role, ROLE_COLORS[edge.role])
        arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": color, "linewidth": 0.9}
        arrow |= {"patchA": boxes[edge.source], "patchB": boxes[edge.target], "shrinkA": 0, "shrinkB": 1}
        if edge.bend:
            turn = max(start[0], end[0]) + edge.bend * width
            line = [start[0], turn, turn], [start[1], start[1], end[1]]
            axes.plot(*line, color=color, linewidth=0.9, zorder=BELOW_BOXES)
            start = turn, end[1]
            arrow["patchA"] = None
        axes.annotate("", end, start, arrowprops=arrow, zorder=BELOW_BOXES)
        if edge.text:
            middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
            letters = MUTED_COLOR if edge.role in EDGE_ROLE_COLORS else color
            look: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False, "color": letters}
            look |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5}}
            axes.text(*middle, drawable(edge.text, MAX_LETTERS), fontproperties=text_font(6.5), **look)
    total = size(panel)
    axes.set(xlim=(0, total[0]), ylim=(total[1] - 0.4, 0))
    write_title(axes, panel.title, total[0])


def _draw_node(axes: "Axes", node: Node, middle: tuple[float, float], panel: Graph) -> Any:
    """Draw a box with its text. Return the box."""
    from matplotlib.patches import FancyBboxPatch

    width, height = _cell(panel)
    box = (CIRCLE, CIRCLE) if node.shape == "circle" else (width - GAP, height - ROW_GAP)
    if panel.shape == "text":  # without a frame arrows are to end at the letters, and not be hidden beside
        letters = min(MAX_LETTERS, max(map(len, node.lines), default=0))
        box = min(box[0], LETTER * letters + 0.08), LINE * _height(node)
    corner = middle[0] - box[0] / 2, middle[1] - box[1] / 2
    color = EDGE_COLOR if node.role == "plain" else ROLE_COLORS[node.role]
    rounding = CIRCLE / 2 if node.shape == "circle" else 0.05
    style = f"round,pad=0,rounding_size={rounding}"
    patch = FancyBboxPatch(corner, *box, boxstyle=style, facecolor="white", edgecolor=color)
    if panel.shape == "text":
        patch.set_edgecolor("none")
    axes.add_patch(patch)
    text = "\n".join(drawable(line, MAX_LETTERS) for line in node.lines)
    look: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False, "zorder": 3}
    axes.text(*middle, text, fontproperties=text_font(7.5), color=ROLE_COLORS[node.role], **look)
    return patch


def _cell(panel: Graph) -> tuple[float, float]:
    """Return width and height of the place of a box, in inches."""
    lines = [line for node in panel.nodes for line in node.lines]
    letters = min(MAX_LETTERS, max(map(len, lines), default=1))
    return LETTER * letters + 0.2 + GAP, LINE * max(map(_height, panel.nodes), default=1) + 0.14 + ROW_GAP


def _height(node: Node) -> int:
    return len(node.lines)
