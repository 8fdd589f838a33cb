"""A panel of each kind, whose texts are given: the examples that tests of renderers share."""

import numpy as np

from foveal.inspection.panels import (
    Axis,
    Bars,
    Caption,
    ColoredText,
    Edge,
    Graph,
    Heatmap,
    HeatmapGrid,
    Histogram,
    Histograms,
    ImageRow,
    Images,
    Lines,
    Mark,
    NamedArray,
    Node,
    Panel,
    Series,
    Table,
    Tile,
)

NUMBERS = np.array([[0.5, np.nan, -1.0], [0.25, 1.0, np.inf]])
PIXELS = np.zeros((4, 6, 3), np.uint8)
SQUARE = np.array([[0.0, 0.0], [0.0, 3.0], [3.0, 3.0]])
KINDS = (
    "heatmap",
    "heatmapgrid",
    "lines",
    "histograms",
    "bars",
    "coloredtext",
    "images",
    "graph",
    "table",
)


def panel(kind: str, text: str) -> Panel:
    """Return a panel of a kind, with `text` wherever a text may stand."""
    down, across = Axis(text, (f"{text}0", f"{text}1")), Axis(text, (f"{text}2", f"{text}3", f"{text}4"))
    array = NamedArray(NUMBERS, (down, across), text)
    cells = ((text, "", text), ("", text, ""))
    grid = NamedArray(NUMBERS.reshape(1, 2, 1, 3), (Axis(text), down, Axis(text), across), text)
    rings = Series(text, [1, 3], [0.5, 2.5], "ring", labels=(text, text))
    band = Series(text, [1, 2, 3], [0.5, float("nan"), 2.0], band=([0.0, 0.0, 0.0], [1.0, 1.0, 3.0]))
    marks = tuple(
        Mark(SQUARE, closed=end == "", numbered=end == "dot", end=end, dotted=end == "star")
        for end in ("", "dot", "cross", "star", "arrow")
    )
    captions = Caption(text), Caption(text, "incorrect")
    color, gray = Tile(PIXELS, captions, marks, np.array([[0.0, 1.0]])), Tile(PIXELS[..., :1], captions)
    nodes = Node("a", (text, text), (0.0, 0.0)), Node("b", (text,), (0.5, 1.0), "highlight")
    panels: dict[str, Panel] = {
        "heatmap": Heatmap(text, array, -1.0, 1.0, cells),
        "heatmapgrid": HeatmapGrid(text, grid, 0.0, 1.0),
        "lines": Lines(text, (rings, band), text, text),
        "histograms": Histograms(
            text, np.array([0.0, 1, 2]), (Histogram(text, (3, 1), 0, text), Histogram(text, (0, 1)))
        ),
        "bars": Bars(text, array),
        "coloredtext": ColoredText(text, (text, f" {text}\n", text), array, 0.0, 1.0),
        "images": Images(text, (ImageRow((color, None, gray), text, captions), ImageRow((None, color)))),
        "graph": Graph(text, nodes, (Edge("a", "b", text),)),
        "table": Table(text, (text, text), ((text, text),)),
    }
    return panels[kind]
