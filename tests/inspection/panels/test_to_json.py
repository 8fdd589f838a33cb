"""The JSON of each panel has its numbers under their names, and its sentence says what they are."""

from typing import Any

import numpy as np
import pytest

from foveal.inspection.panels import (
    Axis,
    Bars,
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

NUMBERS = np.array([[0.0, 0.5, 1.0], [0.25, 0.75, 0.1]])
AXES = Axis("unit", ("u", "v")), Axis("token")
ARRAY: dict[str, Any] = {"dims": ["unit", "token"], "labels": {"unit": ["u", "v"]}, "unit": "nats"}


def array() -> NamedArray:
    return NamedArray(NUMBERS, AXES, "nats")


def test_an_array_has_its_axes_in_order() -> None:
    assert array().to_json() == ARRAY | {"values": NUMBERS.tolist()}


def test_maps_and_texts_have_their_scale() -> None:
    heatmap = Heatmap("", array(), -2.0, 1.0)
    assert (heatmap.to_json()["low"], heatmap.to_json()["high"]) == (-2.0, 1.0)
    assert heatmap.sentence() == "2 x 3 map of unit by token, nats"
    text = ColoredText("", ("a", "b", "c"), array(), -2.0, 1.0)
    assert (text.to_json()["low"], text.to_json()["high"]) == (-2.0, 1.0)
    with pytest.raises(ValueError, match="2 tokens, but"):
        ColoredText("", ("a", "b"), array(), 0.0, 1.0)


@pytest.mark.parametrize(("low", "expected"), [(-2.0, False), (-1.0, True), (0.0, False)])
def test_colors_diverge_where_zero_is_the_middle(low: float, expected: bool) -> None:
    assert Heatmap("", array(), low, 1.0).diverging is expected


def test_lines_have_their_points_bands_and_scales() -> None:
    series = Series("mean", [1, 2], [3.0, 5.0], band=([2.0, 4.0], [6.0, 7.0]))
    written = Lines("", (series,), "step", "loss", log_y=True).to_json()
    assert written == {
        "x": "step",
        "y": "loss",
        "series": [{"name": "mean", "x": [1, 2], "y": [3.0, 5.0], "low": [2.0, 4.0], "high": [6.0, 7.0]}],
        "log_x": False,
        "log_y": True,
    }


def test_images_have_their_marks_and_the_numbers_over_them() -> None:
    pixels, points = np.zeros((4, 6, 3), np.uint8), np.array([[0.0, 1.0], [2.0, 5.0]])
    heat = np.array([[0.0, 0.25], [0.5, 1.0]])
    tile = Tile(pixels, marks=(Mark(points),), heat=heat)
    images = Images("eyes", (ImageRow((tile, None)), ImageRow((tile,))))
    (written, nothing), (_,) = (row["tiles"] for row in images.to_json()["rows"])
    assert written == {"shape": [4, 6, 3], "captions": [], "marks": [points.tolist()], "heat": heat.tolist()}
    assert nothing is None
    assert images.sentence() == "2 images: eyes"


def test_histograms_have_all_their_edges() -> None:
    panel = Histograms("", np.array([-1.0, 0.0, 2.0]), (Histogram("x", (3, 4)),))
    assert panel.to_json() == {
        "edges": [-1.0, 0.0, 2.0],
        "histograms": [{"name": "x", "counts": [3, 4]}],
    }
    assert panel.sentence() == "histogram from -1 to 2: x"


def test_graphs_have_their_places_and_arrows() -> None:
    nodes = Node("a", ("A",), (0, 1)), Node("b", ("B",), (2, 3.5))
    written = Graph("", nodes, (Edge("a", "b", "c", bend=0.5),)).to_json()
    assert [node["place"] for node in written["nodes"]] == [[0, 1], [2, 3.5]]
    assert written["edges"] == [{"source": "a", "target": "b", "text": "c", "bend": 0.5}]
    with pytest.raises(ValueError, match="two nodes have one name"):
        Graph("", (nodes[0], nodes[0]), ())


def unnamed(*shape: int) -> NamedArray:
    return NamedArray(np.zeros(shape), tuple(Axis("") for _ in shape))


NODES = Node("a", ("A",), (0, 1)), Node("b", ("B",), (2, 3))
SENTENCES: list[tuple[Panel, str]] = [
    (Bars("shares", array()), "shares, 3 bars by token for each of u, v"),
    (Bars("memory: 14.3 of 80 GB", unnamed(1, 5)), "memory: 14.3 of 80 GB, 5 bars"),
    (Bars("", unnamed(2, 1)), "1 bar for each of 2 series"),
    (ColoredText("", ("a",), unnamed(1, 1), 0.0, 1.0), "text of 1 token"),
    (Graph("", NODES, (Edge("a", "b"),)), "graph of 2 nodes and 1 edge"),
    (Heatmap("", unnamed(2, 3), 0.0, 1.0), "2 x 3 map"),
    (HeatmapGrid("", unnamed(1, 2, 3, 4), 0.0, 1.0), "1 x 2 maps, each 3 x 4"),
    (
        Histograms("", np.array([17, 3120.0]), (Histogram("source", (9,)),), x_label="length in words"),
        "histogram of length in words from 17 to 3,120: source",
    ),
    (
        Histograms("", np.array([0.0, 0.12345]), (Histogram("a", (9,)), Histogram("b", (9,)))),
        "histograms from 0 to 0.123: a, b",
    ),
    (Lines("", (Series("loss", [1], [2]),), "step", "loss"), "loss by step"),
    (Lines("t", (Series("a", [1], [2]), Series("a", [1], [2]), Series("", [1], [2])), ""), "t: a"),
    (Table("", ("", "check"), (("x", "y"),)), "table of 1 row: check"),
    (Table("", ("",), (("x",), ("y",))), "table of 2 rows"),
]
"""Panels with names and without, one of a thing and several, and their descriptions."""


@pytest.mark.parametrize(("panel", "expected"), SENTENCES)
def test_a_sentence_is_whole_without_names_and_of_one_thing(panel: Panel, expected: str) -> None:
    assert panel.sentence() == expected
