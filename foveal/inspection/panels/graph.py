"""Boxes and arrows: a computational graph, a tree of hypotheses."""

from dataclasses import dataclass
from typing import Any, Literal

from foveal.core.terminal_text import counted
from foveal.inspection.panels.images import Role


@dataclass(frozen=True)
class Node:
    """A box of a graph."""

    name: str
    """A name that no other node has."""
    lines: tuple[str, ...]
    """The text of the box."""
    place: tuple[float | int, float | int]
    """Column and row, counted in boxes from the upper left."""
    role: Role = "plain"
    shape: Literal["box", "circle"] = "box"
    """A circle is small: for the sign of an operation."""


@dataclass(frozen=True)
class Edge:
    """An arrow between two boxes."""

    source: str
    target: str
    text: str = ""
    role: Role = "plain"
    bend: float = 0.0
    """How far the arrow goes to the right before it turns, in boxes; 0 for a straight one."""


@dataclass(frozen=True)
class Graph:
    """Boxes at given places, joined by arrows."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    shape: Literal["box", "text"] = "box"

    def __post_init__(self) -> None:
        names = {node.name for node in self.nodes}
        if len(names) < len(self.nodes):
            raise ValueError(f"{self.title}: two nodes have one name")
        for edge in self.edges:
            if not {edge.source, edge.target} <= names:
                raise ValueError(f"{self.title}: an edge from {edge.source} to {edge.target}, one unknown")

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        return f"graph of {counted(len(self.nodes), 'node')} and {counted(len(self.edges), 'edge')}"

    def to_json(self) -> dict[str, Any]:
        """Return nodes and edges."""
        nodes = [
            {"name": node.name, "lines": [*node.lines], "place": [*node.place], "shape": node.shape}
            for node in self.nodes
        ]
        edges = [
            {"source": edge.source, "target": edge.target, "text": edge.text, "bend": edge.bend}
            for edge in self.edges
        ]
        return {"nodes": nodes, "edges": edges}
