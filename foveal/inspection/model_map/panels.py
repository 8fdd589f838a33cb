"""The graph of a model as panels: boxes with arrows, and a table of the same."""

from foveal.inspection.model_map.fold import Box, ModelGraph, places
from foveal.inspection.model_map.trace import INPUT, OUTPUT
from foveal.inspection.panels import Edge, Graph, Node, Table
from foveal.inspection.panels.images import Role

COLUMNS = ("box", "kind", "output", "parameters", "multiply-adds", "reads")
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
BEND, BEND_STEP = 0.53, 0.05
"""Widths of a box after which an arrow around other boxes turns: just past them."""


def graph_panel(graph: ModelGraph) -> Graph:
    """Return the boxes, from the inputs at the top to the output."""
    at = places(graph)
    names = {name for edge in graph.edges for name in edge}
    nodes = tuple(
        Node(name, _lines(box), at[name], _role(box), "circle" if _is_circle(box) else "box")
        for name, box in graph.boxes.items()
        if name in names and name in at
    )
    edges, bent = [], 0
    for source, target in graph.edges:
        is_bent = _is_over_boxes(source, target, at)
        # Neighbors turn at different places, so that one is not taken for the continuation of the other.
        edges.append(Edge(source, target, "", "plain", BEND + BEND_STEP * (bent % 2) if is_bent else 0.0))
        bent += is_bent
    return Graph("", nodes, tuple(edges))


def table_panel(graph: ModelGraph) -> Table:
    """Return the boxes with their sizes, and what they read, with the sums."""
    rows = []
    for name, box in graph.boxes.items():
        reads = [source.rpartition("/")[2] for source, target in graph.edges if target == name]
        if not reads and not box.parameters and not box.multiply_adds:
            continue
        kind = box.symbol or box.kind
        counts = [f"{count:,}" if count else "" for count in (box.parameters, box.multiply_adds)]
        rows.append((_title(box), kind, _shape(box), *counts, ", ".join(map(_short, reads))))
    sums = [
        sum(getattr(box, name) for box in graph.boxes.values()) for name in ("parameters", "multiply_adds")
    ]
    rows.append(("total", "", "", *(f"{count:,}" for count in sums), ""))
    return Table("", COLUMNS, tuple(rows))


def _is_circle(box: Box) -> bool:
    return len(box.symbol) == 1


def _role(box: Box) -> Role:
    return "muted" if box.symbol in (INPUT, OUTPUT) else "plain"


def _is_over_boxes(source: str, target: str, at: dict[str, tuple[int, float]]) -> bool:
    """Return whether a straight arrow would run over other boxes."""
    (column, row), (other, last) = at[source], at[target]
    low, high = sorted((row, last))
    between = any(place == column and low < line < high for place, line in at.values())
    return column == other and between


def _lines(box: Box) -> tuple[str, ...]:
    if _is_circle(box):
        return (box.symbol,)
    counts = []
    if box.parameters:
        counts.append(f"{short_count(box.parameters)} parameters")
    if box.multiply_adds:
        counts.append(f"{short_count(box.multiply_adds)} multiply-adds")
    return tuple(line for line in (_title(box), f"{box.kind}  {_shape(box)}".strip(), *counts) if line)


def _title(box: Box) -> str:
    return (
        box.name.removeprefix(f"{INPUT}:") if not box.symbol or box.symbol in (INPUT, OUTPUT) else box.symbol
    )


def _short(name: str) -> str:
    """Return the name of a box; of an operation, its symbol."""
    return name.removeprefix(f"{INPUT}:").partition(" of ")[0]


def _shape(box: Box) -> str:
    return "x".join(map(str, box.shape))


def short_count(count: int) -> str:
    """Return a count in three digits, such as 1.23 M."""
    for size, letter in UNITS:
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return str(count)
