"""Numbers stand at their places in pictures: rows down, columns across, one scale, bars of their height."""

from typing import Any

import numpy as np
import pytest

from foveal.inspection.figures import compose
from foveal.inspection.figures.compose import RENDERERS, draw_payload
from foveal.inspection.panels import (
    Axis,
    Bars,
    ColoredText,
    Edge,
    Graph,
    Heatmap,
    HeatmapGrid,
    Lines,
    NamedArray,
    Node,
    Panel,
    Series,
    Table,
)
from foveal.inspection.payload import Payload
from foveal.inspection.style import new_figure

NUMBERS = np.array([[0.0, 0.5, 1.0], [0.25, 0.75, 0.1]])
AXES = Axis("down", ("first", "second")), Axis("across", ("a", "b", "c"))


def drawn(panel: Panel) -> list[Any]:
    """Return the axes of a panel, those of colors last."""
    figure = new_figure(6.0, 6.0)
    RENDERERS[type(panel)].draw(figure.subfigures(1, 1), panel)
    return figure.axes


def names(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


def test_a_map_has_rows_down_and_columns_across() -> None:
    axes, _ = drawn(Heatmap("", NamedArray(NUMBERS, AXES), 0.0, 2.0))
    assert np.array_equal(axes.images[0].get_array(), NUMBERS)
    assert axes.images[0].get_clim() == (0.0, 2.0)
    assert axes.images[0].origin == "upper"
    bottom, top = axes.get_ylim()
    assert bottom > top, "the first row is the upper one"
    assert (names(axes.get_yticklabels()), names(axes.get_xticklabels())) == (
        ["first", "second"],
        ["a", "b", "c"],
    )


def test_each_map_of_a_grid_stands_at_its_row_and_column_on_one_scale() -> None:
    maps = np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2) / 24
    grid = HeatmapGrid("", NamedArray(maps, (*AXES, Axis("to"), Axis("from"))), 0.0, 1.0)
    *axes, _ = drawn(grid)
    for number, each in enumerate(axes):
        assert np.array_equal(each.images[0].get_array(), maps[divmod(number, 3)])
        assert each.images[0].get_clim() == (0.0, 1.0)
    assert [each.get_title() for each in axes[:3]] == ["a", "b", "c"]
    assert [each.get_ylabel() for each in axes[::3]] == ["first", "second"]


def test_bars_are_as_high_as_their_numbers_side_by_side() -> None:
    (axes,) = drawn(Bars("", NamedArray(NUMBERS, AXES)))
    bars = sorted((round(bar.get_x() + bar.get_width() / 2, 6), bar.get_height()) for bar in axes.patches)
    assert [height for _, height in bars] == NUMBERS.T.ravel().tolist()
    assert [place for place, _ in bars] == pytest.approx([-0.2, 0.2, 0.8, 1.2, 1.8, 2.2])


def test_lines_run_through_their_points() -> None:
    (axes,) = drawn(Lines("", (Series("s", [1, 2, 4], [3.0, 5.0, 4.0]),), "x", log_y=True))
    assert axes.lines[0].get_xydata().tolist() == [[1, 3], [2, 5], [4, 4]]
    assert axes.get_yscale() == "log"


def placed(monkeypatch: pytest.MonkeyPatch, *panels: Panel) -> Any:
    """Return the figure of panels, after its layout."""
    figures = []

    def kept(*size: Any) -> Any:
        figures.append(new_figure(*size))
        return figures[0]

    monkeypatch.setattr(compose, "new_figure", kept)
    draw_payload(Payload("view", "run", "title", panels, "caveat", "exact"))
    return figures[0]


def test_small_maps_keep_their_shape_below_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Heatmap("", NamedArray(np.zeros((30, 30)), (Axis("down"), Axis("across"))), 0.0, 1.0)
    maps = NamedArray(np.zeros((3, 3, 8, 8)), (Axis("layer"), Axis("head"), Axis("to"), Axis("from")))
    figure = placed(monkeypatch, large, HeatmapGrid("", maps, 0.0, 1.0))
    box = figure.axes[2].get_window_extent()  # after the large map and its scale
    assert box.width == pytest.approx(box.height, rel=0.3)


def test_the_scale_below_a_short_text_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    values = NamedArray(np.array([[0.0, 1.0]]), (Axis("unit", ("a",)), Axis("token")))
    figure = placed(monkeypatch, ColoredText("", ("one ", "two"), values, 0.0, 1.0))
    scale = figure.axes[1].get_window_extent()
    assert scale.height > 0.03 * figure.dpi
    assert scale.width > 2.0 * figure.dpi


def test_arrows_between_words_begin_and_end_at_their_letters() -> None:
    words = Node("a", ("start",), (0, 0)), Node("b", ("a", "-12.34"), (1, 1)), Node("c", ("x",), (2, 2))
    (axes,) = drawn(Graph("", words, (Edge("a", "b"), Edge("b", "c")), shape="text"))
    boxes = [patch.get_path().get_extents() for patch in axes.patches[:3]]
    assert boxes[2].width < boxes[0].width < boxes[1].width
    assert boxes[0].height == pytest.approx(boxes[1].height / 2)


def test_lines_of_a_cell_stand_below_each_other() -> None:
    long = "\n".join(f"line {number} {'w' * 90}" for number in range(9))
    (axes,) = drawn(Table("", ("step", "text"), (("1", long), ("2", "first\n\nsecond"))))
    lines = [line.split() for line in axes.texts[0].get_text().splitlines()]
    assert lines[6][:2] == ["line", "5"]
    assert lines[7] == ["…"]
    assert len(lines) == 1 + 6 + 1 + 2
    assert lines[-2:] == [["2", "first"], ["second"]]
