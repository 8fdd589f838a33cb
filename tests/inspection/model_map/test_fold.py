"""Boxes of folded graphs have the sizes of what is in them, and stand below what they read."""

import pytest
import torch
from torch import Tensor, nn

from foveal.inspection.model_map.fold import (
    MAX_BOXES,
    SIGN_HEIGHT,
    Box,
    ModelGraph,
    fitting_depth,
    fold,
    places,
)
from foveal.inspection.model_map.panels import graph_panel, table_panel
from foveal.inspection.model_map.trace import INPUT, trace_model


def drawn(edges: list[tuple[str, str]], **symbols: str) -> ModelGraph:
    names = dict.fromkeys(name for edge in edges for name in edge)
    boxes = {name: Box(name, symbols.get(name, ""), "", (), 0, 0) for name in names}
    return ModelGraph(boxes, tuple(edges), 0)


class Products(nn.Module):
    """A layer, and the products of its outputs with each other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return y @ y.mT


def test_a_product_that_joins_nothing_counts_for_the_box_before_it() -> None:
    model, x = Products(), torch.randn(1, 5, 4)
    graph = fold(trace_model(model, {"x": x}, lambda: model(x)), 1)
    assert graph.edges == (("input:x", "layer"), ("layer", "output"))
    assert graph.boxes["layer"].multiply_adds == 5 * 4 * 3 + 5 * 5 * 3


@pytest.mark.parametrize(("count", "depth"), [(1, 2), (MAX_BOXES, 2), (MAX_BOXES + 1, 1)])
def test_modules_are_unfolded_as_far_as_they_fit(count: int, depth: int) -> None:
    x = torch.randn(1, 2)
    model = nn.Sequential(nn.Sequential(*(nn.Linear(2, 2) for _ in range(count))))
    assert fitting_depth(trace_model(model, {"x": x}, lambda: model(x))) == depth


FORK = [
    ("x", "a.first"),
    ("x", "b.first"),
    ("b.first", "b.second"),
    ("a.first", "a.last"),
    ("b.second", "a.last"),
    ("b.first", "a.last"),
]
"""Two ways of unequal length that meet."""


def test_a_box_stands_below_the_one_whose_name_is_most_like_its_own() -> None:
    at = places(drawn(FORK, x=INPUT))
    assert (at["b.first"], at["b.second"]) == ((1, 1.0), (1, 2.0))
    assert (at["a.first"], at["a.last"]) == ((0, 1.0), (0, 3.0))


def test_an_arrow_to_another_column_is_straight() -> None:
    """It passes the boxes below its source at the side."""
    bends = {(edge.source, edge.target): edge.bend for edge in graph_panel(drawn(FORK, x=INPUT)).edges}
    assert bends["b.first", "a.last"] == 0
    assert bends["a.first", "a.last"] == 0
    straight_on = drawn([*FORK[2:3], ("b.second", "b.third"), ("b.first", "b.third")])
    assert [edge.bend > 0 for edge in graph_panel(straight_on).edges] == [False, False, True]


def test_a_row_of_signs_is_lower() -> None:
    at = places(drawn([("x", "a"), ("a", "sum"), ("sum", "b")], x=INPUT, sum="+"))
    assert [at[name][1] for name in ("x", "a", "sum", "b")] == pytest.approx(
        [0, 1, 2 + SIGN_HEIGHT / 2 - 0.5, 2 + SIGN_HEIGHT]
    )


def test_the_table_and_the_boxes_have_each_size_under_its_name() -> None:
    model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)), torch.randn(1, 5, 4)
    graph = fold(trace_model(model, {"x": x}, lambda: model(x)), 1)
    assert table_panel(graph).rows == (
        ("0", "Linear", "5x6", "30", "120", "x"),
        ("1", "ReLU", "5x6", "", "", "0"),
        ("2", "Linear", "5x2", "14", "60", "1"),
        ("output", "output", "5x2", "", "", "2"),
        ("total", "", "", "44", "180", ""),
    )
    lines = {node.name: node.lines for node in graph_panel(graph).nodes}
    assert lines["0"] == ("0", "Linear  5x6", "30 parameters", "120 multiply-adds")
    assert lines["input:x"][-1] == "5x4"
