"""What stands in, on and beside curves, bars and maps: texts, frames, bands, names, limits and colors."""

from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex

from foveal.inspection.figures.compose import RENDERERS
from foveal.inspection.panels import (
    Axis,
    Bars,
    Heatmap,
    Histogram,
    Histograms,
    Lines,
    NamedArray,
    Panel,
    Series,
)
from foveal.inspection.style import DIVERGING_MAP, SEQUENTIAL_MAP, new_figure, series_color

NUMBERS = np.array([[0.0, 0.5, 1.0], [0.25, 0.75, 0.1]])
AXES = Axis("down", ("first", "second")), Axis("across", ("a", "b", "c"))


def drawn(panel: Panel) -> Any:
    """Return the axes of a panel without those of its colors."""
    figure = new_figure(6.0, 6.0)
    RENDERERS[type(panel)].draw(figure.subfigures(1, 1), panel)
    return figure.axes[0]


def names(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


def test_texts_and_frames_of_a_map_are_those_of_their_cells() -> None:
    texts = tuple(tuple(f"{value:g}" for value in row) for row in NUMBERS)
    axes = drawn(Heatmap("", NamedArray(NUMBERS, AXES), 0.0, 1.0, texts, ((1, 2),)))
    found = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts}
    assert found == {(row, column): texts[row][column] for row in range(2) for column in range(3)}
    (frame,) = axes.patches
    assert frame.get_xy() == (1.5, 0.5), "of row 1 and column 2"
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("down", "across")


@pytest.mark.parametrize(("low", "colors"), [(-1.0, DIVERGING_MAP), (0.0, SEQUENTIAL_MAP)])
def test_a_map_has_the_colors_of_its_scale(low: float, colors: str) -> None:
    axes = drawn(Heatmap("", NamedArray(NUMBERS, AXES), low, 1.0))
    assert axes.images[0].to_rgba(1.0) == pytest.approx(colormaps[colors](1.0))
    assert axes.images[0].to_rgba(low) == pytest.approx(colormaps[colors](0.0))


def test_where_a_large_map_has_few_names_they_stand_at_their_rows() -> None:
    rows = tuple(f"row {row}" for row in range(300))
    axes = drawn(Heatmap("", NamedArray(np.zeros((300, 2)), (Axis("down", rows), Axis("across"))), 0.0, 1.0))
    assert 30 < len(axes.get_yticks()) < 100
    assert names(axes.get_yticklabels()) == [f"row {place}" for place in axes.get_yticks()]


def test_curves_have_their_colors_bands_names_and_limits() -> None:
    band = Series("mean", [1, 2, 4], [3.0, 5.0, 4.0], "line", 2, ([2.0, 4.0, 3.0], [6.0, 7.0, 8.0]))
    points = Series("runs", [1, 2], [7.0, 2.0], "points", 1, labels=("left", "right"))
    axes = drawn(Lines("", (band, points), "step", "loss", log_x=True, limits=(0.5, 9.0), equal=True))
    assert [to_hex(line.get_color()) for line in axes.lines] == [series_color(2), series_color(1)]
    corners = {(x, y) for x, y in axes.collections[0].get_paths()[0].vertices.tolist()}
    assert corners == {(1, 2), (2, 4), (4, 3), (1, 6), (2, 7), (4, 8)}
    assert {text.get_text(): text.xy for text in axes.texts} == {"left": (1, 7.0), "right": (2, 2.0)}
    assert axes.get_ylim() == (0.5, 9.0)
    assert axes.get_xscale() == "log"
    assert axes.get_aspect() == 1
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "loss")


def test_bars_have_the_colors_of_their_series_and_the_names_of_their_positions() -> None:
    axes = drawn(Bars("", NamedArray(NUMBERS, AXES, "share"), high=4.0))
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [series_color(0)] * 3 + [
        series_color(1)
    ] * 3
    assert [*axes.get_xticks()] == [0, 1, 2]
    assert names(axes.get_xticklabels()) == ["a", "b", "c"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("across", "share")
    assert axes.get_ylim() == (0, 4.0)


def test_bars_without_names_are_numbered_from_one() -> None:
    axes = drawn(Bars("", NamedArray(NUMBERS[:1], (Axis("series"), Axis("unit")))))
    middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    assert middles == pytest.approx([1, 2, 3])


@pytest.mark.parametrize("style", ["line", "dotted", "faint"])
def test_a_curve_of_a_single_point_is_seen(style: Any) -> None:
    axes = drawn(Lines("", (Series("front", [1.0], [2.0], style), Series("runs", [0, 2], [1, 3])), "cost"))
    lone, line = axes.lines
    assert (lone.get_marker(), lone.get_linestyle()) == ("o", "None")
    assert (line.get_marker(), line.get_linestyle()) == ("None", "-")


@pytest.mark.parametrize("is_log", [False, True])
def test_large_numbers_have_a_letter_and_no_power_beside_the_axis(is_log: bool) -> None:
    axes = drawn(Lines("", (Series("s", [1.5e9, 9e9], [1, 2]),), "FLOPs", log_x=is_log))
    axes.figure.figure.draw_without_rendering()
    labels = names(axes.get_xticklabels())
    assert {"2 G", "5 G"} <= {*labels} or {"2 G", "8 G"} <= {*labels}
    assert axes.xaxis.get_offset_text().get_text() == ""


@pytest.mark.parametrize("is_log", [False, True])
def test_a_histogram_alone_has_the_names_and_numbers_of_both_axes(is_log: bool) -> None:
    counts = (Histogram("source", (30, 2, 1)),)
    edges = np.array([10.0, 100.0, 1000.0, 3200.0])
    axes = drawn(Histograms("rows of each length", edges, counts, 0, "length in words", "rows", is_log))
    found = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in axes.patches]
    assert found == [(10, 100, 30), (100, 1000, 2), (1000, 3200, 1)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("length in words", "rows")
    assert axes.get_title(loc="left") == "rows of each length"
    assert axes.get_xscale() == ("log" if is_log else "linear")
    assert len(axes.get_yticks()) > 2
    assert "500" in names(axes.get_xticklabels())
