"""Boxes stand in their columns and rows, bins between their edges, tokens on the colors of their numbers."""

from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps

from foveal.inspection.figures import colored_text
from foveal.inspection.figures.compose import RENDERERS
from foveal.inspection.panels import (
    Axis,
    ColoredText,
    Edge,
    Graph,
    Histogram,
    Histograms,
    NamedArray,
    Node,
    Panel,
    Table,
)
from foveal.inspection.style import DIVERGING_MAP, SEQUENTIAL_MAP, new_figure

TOKENS = ("one ", "two\n", "three")


def drawn(panel: Panel) -> list[Any]:
    """Return the axes of a panel."""
    figure = new_figure(6.0, 6.0)
    RENDERERS[type(panel)].draw(figure.subfigures(1, 1), panel)
    return figure.axes


def middles(axes: Any) -> dict[str, tuple[float, float]]:
    """Return the middle of each text, in columns and rows from that of `a`."""
    at = {text.get_text(): np.array(text.get_position()) for text in axes.texts if text.get_text()}
    unit = at["b"] - at["a"]
    return {name: tuple((place - at["a"]) / unit) for name, place in at.items()}


def test_boxes_stand_in_their_columns_and_rows() -> None:
    nodes = tuple(Node(name, (name,), place) for name, place in (("a", (0, 0)), ("b", (1, 1)), ("c", (2, 0))))
    (axes,) = drawn(Graph("", nodes, (Edge("a", "c", "d"),)))
    found = middles(axes)
    assert found["c"] == pytest.approx((2, 0))
    assert found["d"] == pytest.approx((1, 0)), "the text of an arrow stands in its middle"
    bottom, top = axes.get_ylim()
    assert bottom > top, "the first row is the upper one"


def test_an_arrow_points_from_its_source_to_its_target() -> None:
    nodes = Node("a", ("a",), (0, 0)), Node("b", ("b",), (0, 2))
    (axes,) = drawn(Graph("", nodes, (Edge("a", "b"), Edge("b", "a", bend=0.5))))
    at = {text.get_text(): text.get_position() for text in axes.texts if text.get_text()}
    straight, bent = [text for text in axes.texts if getattr(text, "arrow_patch", None)]
    assert (straight.xyann, straight.xy) == (pytest.approx(at["a"]), pytest.approx(at["b"]))
    assert bent.xy == pytest.approx(at["a"])
    (around,) = axes.lines
    assert around.get_xydata()[0] == pytest.approx(at["b"])
    assert around.get_xydata()[1][0] > at["a"][0], "it goes around at the right"


def test_bins_are_as_high_as_their_counts_between_their_edges() -> None:
    edges = np.array([-1.0, 0.0, 1.0, 2.0])
    first, second = drawn(
        Histograms("", edges, (Histogram("x", (3, 90, 1), 1, "note"), Histogram("y", (0, 2, 4))))
    )
    found = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in first.patches]
    assert found == [(-1, 0, 3), (0, 1, 90), (1, 2, 1)]
    assert [bar.get_height() for bar in second.patches] == [0, 2, 4]
    assert [axes.get_title() for axes in (first, second)] == ["x", "y"]
    assert 3 < first.get_ylim()[1] < 5, "a tall bin is cut off above the others"


def test_tokens_have_the_colors_of_their_numbers_row_by_row() -> None:
    values = np.array([[-1.0, 0.0, 0.5], [0.25, 1.0, np.nan]])
    for low, name in ((-1.0, DIVERGING_MAP), (0.0, SEQUENTIAL_MAP)):
        colors = colormaps[name]
        shown = values if low else np.abs(values)
        axes, _ = drawn(
            ColoredText("", TOKENS, NamedArray(shown, (Axis("unit", ("u", "v")), Axis("token"))), low, 1.0)
        )
        boxes = [box.get_facecolor() for box in axes.patches]
        shares = (shown.flatten() - low) / (1 - low)
        expected = [(1, 1, 1, 1) if np.isnan(share) else colors(share) for share in shares]
        assert np.array(boxes) == pytest.approx(np.array(expected), abs=0.02)
        rows = [text.get_position()[1] for text in axes.texts if text.get_text() in ("u", "v")]
        assert [text.get_text() for text in axes.texts if text.get_text() in ("u", "v")] == ["u", "v"]
        tops = [box.get_y() for box in axes.patches]
        assert rows[0] < min(tops[:3]) <= max(tops[:3]) < rows[1] < min(tops[3:])


def test_tokens_stand_one_after_another() -> None:
    axes, _ = drawn(
        ColoredText("", TOKENS, NamedArray(np.zeros((1, 3)), (Axis("unit"), Axis("token"))), 0.0, 1.0)
    )
    places = [round(box.get_x() / colored_text.LETTER) for box in axes.patches]
    lines = [round(box.get_y() / colored_text.LINE) for box in axes.patches]
    assert places == [0, 4, 0], "a line break ends a line"
    assert lines == [1, 1, 2]


def test_each_kind_has_one_color_with_its_name_in_the_middle() -> None:
    kinds = ("first", "second", "third")
    axes, scale = drawn(
        ColoredText(
            "", TOKENS, NamedArray(np.array([[0.0, 2.0, 1.0]]), (Axis("a"), Axis("b"))), 0.0, 2.0, kinds
        )
    )
    assert len({box.get_facecolor() for box in axes.patches}) == 3
    ticks = scale.get_xticks()
    assert [tick.get_text() for tick in scale.get_xticklabels()] == [*kinds]
    low, high = scale.get_xlim()
    assert [(tick - low) / (high - low) for tick in ticks] == pytest.approx([1 / 6, 1 / 2, 5 / 6])


def test_a_table_begins_with_the_names_of_its_columns() -> None:
    (axes,) = drawn(Table("", ("step", "loss"), (("1", "2.5"), ("2", "1.5"))))
    lines = [line.split() for line in axes.texts[0].get_text().splitlines()]
    assert lines[0] == ["step", "loss"]
    assert lines[-2:] == [["1", "2.5"], ["2", "1.5"]]
