"""Numbers stand at their places in pictures: rows down, columns across, one scale, bars of their height."""

from typing import Any

import numpy as np
import pytest

from foveal.inspection.figures.compose import RENDERERS
from foveal.inspection.panels import Axis, Bars, Heatmap, HeatmapGrid, Lines, NamedArray, Panel, Series
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
