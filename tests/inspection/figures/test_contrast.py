"""Letters can be read on every color of every palette: contrasts of WCAG 2.2, measured on what is drawn."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from foveal.inspection.figures import colored_text
from foveal.inspection.figures.compose import RENDERERS
from foveal.inspection.panels import Axis, ColoredText, Edge, Graph, Heatmap, NamedArray, Node, Panel
from foveal.inspection.panels.images import Role
from foveal.inspection.style import letters_on, new_figure

LEAST = 4.5
SHADES = np.linspace(-1, 1, 511)


def contrast(letters: Any, ground: Any) -> float:
    """Return the contrast of two colors: (L + 0.05) / (l + 0.05) for their luminances L > l."""
    parts = np.array([to_rgb(letters), to_rgb(ground)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ (0.2126, 0.7152, 0.0722) + 0.05)
    return high / low


def drawn(panel: Panel) -> Any:
    """Return the axes of a panel."""
    figure = new_figure(6.0, 6.0)
    RENDERERS[type(panel)].draw(figure.subfigures(1, 1), panel)
    return figure.axes[0]


def text_on(values: np.ndarray, low: float, kinds: tuple[str, ...] = ()) -> ColoredText:
    tokens = ("x", ")", "漢") * (len(values) // 3 + 1)
    axes = Axis("unit", ("one",)), Axis("token", tokens[: len(values)])
    high = max(1.0, float(len(kinds) - 1))
    return ColoredText("", tokens[: len(values)], NamedArray(values[None], axes), low, high, kinds)


def letters_and_grounds(axes: Any) -> list[tuple[Any, Any]]:
    """Return the color of each letter, and that of the rectangle at its place."""
    grounds = {
        (round(box.get_y(), 3), round(box.get_x() / colored_text.LETTER)): box.get_facecolor()
        for box in axes.patches
    }
    pairs = []
    for text in axes.texts[1:]:
        x, y = text.get_position()
        top = round(y - colored_text.LINE / 2, 3)
        first = round(x / colored_text.LETTER - 0.5 * (text.get_ha() == "center"))
        for place, letter in enumerate(text.get_text(), first):
            if letter.strip():
                pairs.append((text.get_color(), grounds[top, place]))
    return pairs


@pytest.mark.parametrize(
    "panel",
    [
        text_on(SHADES, -1.0),
        text_on(np.abs(SHADES), 0.0),
        text_on(np.append(SHADES, np.nan), -1.0),
        text_on(np.arange(12.0), 0.0, tuple(map(str, range(12)))),
        text_on(np.arange(40.0), 0.0, tuple(map(str, range(40)))),
    ],
    ids=["diverging", "sequential", "no number", "12 kinds", "40 kinds"],
)
def test_every_letter_of_a_colored_text_can_be_read(panel: ColoredText) -> None:
    pairs = letters_and_grounds(drawn(panel))
    assert len(pairs) == len(panel.tokens)
    assert min(contrast(*pair) for pair in pairs) >= LEAST


@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_every_text_in_a_map_can_be_read(low: float) -> None:
    values = np.append(SHADES if low else np.abs(SHADES), np.nan)[None]
    array = NamedArray(values, (Axis("row"), Axis("column")))
    axes = drawn(Heatmap("", array, low, 1.0, (("x",) * values.size,)))
    image = axes.images[0]
    for text in axes.texts:
        value = values[0, text.get_position()[0]]
        ground = axes.get_facecolor() if np.isnan(value) else image.to_rgba(value)
        assert contrast(text.get_color(), ground) >= LEAST


def test_every_text_of_a_graph_can_be_read() -> None:
    roles: tuple[Role, ...] = ("plain", "muted", "correct", "incorrect", "highlight")
    nodes = tuple(Node(role, ("text",), (0, row), role) for row, role in enumerate(roles))
    edges = tuple(Edge("plain", role, "text", role) for role in roles[1:])
    axes = drawn(Graph("", nodes, (*edges, Edge("muted", "correct", "text"))))
    assert sum(text.get_text() == "text" for text in axes.texts) == 2 * len(roles)
    for text in axes.texts:
        assert not text.get_text() or contrast(text.get_color(), "white") >= LEAST


def test_black_or_white_can_be_read_on_every_color() -> None:
    colors = np.random.default_rng(0).uniform(size=(2000, 3))
    assert min(contrast(letters_on(color), color) for color in colors) >= LEAST
