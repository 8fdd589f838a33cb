"""The legend of curves stands below them, with the name of each."""

import pytest

from foveal.inspection.figures import lines
from foveal.inspection.panels import Lines, Series
from foveal.inspection.style import new_figure


@pytest.mark.parametrize("names", [("_a", "_b"), ("held out", "training"), ("$x$", "a" * 200)])
def test_each_series_is_named_below_the_curves(names: tuple[str, str]) -> None:
    figure = new_figure(8.0, 3.0, "constrained")
    (part,) = figure.subfigures(1, 1, squeeze=False)[0]
    lines.draw(
        part, Lines("", tuple(Series(name, [1, 2], [1, 2]) for name in names), "step", size=(8.0, 3.0))
    )
    figure.draw_without_rendering()
    (legend,) = part.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert [text[:50] for text in texts] == [name[:50] for name in names]
    assert legend.get_window_extent().y1 <= part.axes[0].get_window_extent().y0
