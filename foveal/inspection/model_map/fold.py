"""The graph of a model with its modules folded to some depth, and the place of each box."""

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import takewhile

from foveal.inspection.model_map.trace import INPUT, OUTPUT, Place, Trace

SIGN_HEIGHT = 0.55
"""The height of a row without boxes."""
MAX_BOXES = 14
"""Modules up to which a graph is unfolded, if the user does not say how far."""


@dataclass(frozen=True)
class Box:
    """A module with all that is inside it, an operation between modules, an input, or the output."""

    name: str
    symbol: str
    """Empty for a module."""
    kind: str
    """The class of the module."""
    shape: tuple[int, ...]
    parameters: int
    multiply_adds: int


@dataclass(frozen=True)
class ModelGraph:
    """Boxes in the order in which they are computed, and arrows between their names."""

    boxes: dict[str, Box]
    edges: tuple[tuple[str, str], ...]
    unused_parameters: int
    """Parameters of modules that this input does not reach."""


def folded_name(place: Place, key: str, depth: int) -> str:
    """Return the name of the box that a place is in: the module around it at that depth, or its own."""
    if place.symbol in (INPUT, OUTPUT):
        return key
    parts = place.path.split(".") if place.path else []
    return key if place.symbol and len(parts) < depth else ".".join(parts[:depth])


def fold(trace: Trace, depth: int) -> ModelGraph:
    """Return the graph of a model whose modules are boxes from `depth` names on."""
    names = {key: folded_name(place, key, depth) for key, place in trace.places.items()}
    edges = {(names[source], names[target]): None for source, target in trace.edges}
    totals: defaultdict[str, int] = defaultdict(int)
    for key, place in trace.places.items():
        totals[names[key]] += place.multiply_adds
    parameters: defaultdict[str, int] = defaultdict(int)
    for path, count in trace.parameters.items():
        parameters[_around(path, totals, depth)] += count
    boxes = {}
    for key, name in names.items():
        place = trace.places[key]
        is_module = name != key or not place.symbol
        symbol = "" if is_module else place.symbol
        shape = trace.shapes.get(name, place.shape) if is_module else place.shape
        kind = trace.kinds.get(name, "") if is_module else ""
        boxes[name] = Box(name, symbol, kind, shape, parameters[name], totals[name])
    unused = parameters[""] if "" not in boxes else 0
    arrows = [edge for edge in edges if edge[0] != edge[1]]
    while (merged := _merged_sign(boxes, arrows)) is not None:
        boxes, arrows = merged
    return ModelGraph(boxes, tuple(arrows), unused)


def _merged_sign(
    boxes: dict[str, Box], edges: list[tuple[str, str]]
) -> tuple[dict[str, Box], list[tuple[str, str]]] | None:
    """Merge an operation that joins nothing, or that nothing reads, with what it reads. Return None if there
    is none."""
    for name, box in boxes.items():
        sources = [source for source, target in edges if target == name]
        targets = [target for source, target in edges if source == name]
        if not box.symbol or box.symbol in (INPUT, OUTPUT) or not sources or (len(sources) > 1 and targets):
            continue
        into = sources[0]
        grown = replace(boxes[into], multiply_adds=boxes[into].multiply_adds + box.multiply_adds)
        rest = {other: grown if other == into else boxes[other] for other in boxes if other != name}
        moved = {
            (into if source == name else source, target): None for source, target in edges if target != name
        }
        return rest, [edge for edge in moved if edge[0] != edge[1]]
    return None


def _around(path: str, boxes: dict[str, int], depth: int) -> str:
    """Return the box that has a module's parameters: the module, or the nearest one around it."""
    parts = path.split(".")[:depth]
    while parts and ".".join(parts) not in boxes:
        parts.pop()
    return ".".join(parts)


def deepest(trace: Trace) -> int:
    """Return the depth at which nothing is folded."""
    return max((len(place.path.split(".")) for place in trace.places.values()), default=1)


def fitting_depth(trace: Trace) -> int:
    """Return the largest depth with at most `MAX_BOXES` modules."""
    depth = 1
    for deeper in range(2, deepest(trace) + 1):
        boxes = fold(trace, deeper).boxes.values()
        if sum(not box.symbol for box in boxes) > MAX_BOXES:
            break
        depth = deeper
    return depth


def places(graph: ModelGraph) -> dict[str, tuple[int, float]]:
    """Return the column and the row of each box.

    The row is the length of the longest way from an input. Of the boxes that a box reads, it stands below the
    one whose name begins most like its own, or beside that place. Inputs stand above the first box that reads
    them.
    """
    order, before = _computed_order(graph)
    cells: dict[str, tuple[int, int]] = {}
    for name in order:
        parents = [parent for parent in before[name] if parent in cells]
        if graph.boxes[name].symbol == INPUT:
            continue
        if parents:
            row = 1 + max(cells[parent][1] for parent in parents)
            nearest = max(parents, key=lambda parent: (_common_parts(parent, name), cells[parent][1]))
            cells[name] = _free(cells, cells[nearest][0], row)
        else:
            cells[name] = _free(cells, 1 + max((column for column, _ in cells.values()), default=-1), 1)
    for source, target in graph.edges:
        if graph.boxes[source].symbol == INPUT and source not in cells:
            cells[source] = _free(cells, cells[target][0], cells[target][1] - 1)
    heights = _row_heights(graph, cells)
    above = {row: sum(heights[other] for other in heights if other < row) for row in heights}
    return {name: (column, above[row] + heights[row] / 2 - 0.5) for name, (column, row) in cells.items()}


def _computed_order(graph: ModelGraph) -> tuple[list[str], dict[str, list[str]]]:
    """Return the boxes so that each comes after those that it reads, and what each reads. Of a circle, the
    box that was computed first comes first, and does not read the others."""
    left = dict.fromkeys(graph.boxes)
    before: dict[str, list[str]] = {name: [] for name in graph.boxes}
    for source, target in graph.edges:
        before[target].append(source)
    order: list[str] = []
    while left:
        ready = (name for name in left if not any(parent in left for parent in before[name]))
        name = next(ready, next(iter(left)))
        before[name] = [parent for parent in before[name] if parent not in left]
        del left[name]
        order.append(name)
    return order, before


def _common_parts(first: str, second: str) -> int:
    """Return how many parts of two dotted names are equal from the start."""
    pairs = zip(first.partition("/")[0].split("."), second.partition("/")[0].split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _free(cells: dict[str, tuple[int, int]], column: int, row: int) -> tuple[int, int]:
    """Return the first free cell of a row from a column on."""
    taken = set(cells.values())
    while (column, row) in taken:
        column += 1
    return column, row


def _row_heights(graph: ModelGraph, cells: dict[str, tuple[int, int]]) -> dict[int, float]:
    """Return the height of each row, in boxes. A row that has only signs is lower."""
    heights: dict[int, float] = {}
    for name, (_, row) in cells.items():
        height = SIGN_HEIGHT if len(graph.boxes[name].symbol) == 1 else 1.0
        heights[row] = max(height, heights.get(row, 0.0))
    return heights
