"""Walks on their maps: where the line goes, and in which colour."""

import io
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image, ImageColor

from foveal.core.errors import UserError
from foveal.tasks.navigation.grid_world import FORWARD, LEFT, MARGIN, STOP, TILE, cells_of
from foveal.tasks.navigation.plot import FAINT, RIGHT, WRONG, Walked, draw, places

CELLS = cells_of(["#####", "#...#", "#.b.#", "#####"])
START = (2 + MARGIN, 1 + MARGIN, 0)


def colours(moves: Sequence[int], right: Sequence[int] | None) -> set[str]:
    """Those of lines in the picture of one walk."""
    png = draw([Walked(CELLS, START, moves, right, "turn at the $green$ table, " * 4)])
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    # Lines are drawn at 0.8 over what lies below; the arrow is not.
    return {
        name for name in (RIGHT, WRONG, FAINT) if (abs(pixels - ImageColor.getrgb(name)).max(-1) < 3).any()
    }


def test_a_walk_has_the_colour_of_its_end() -> None:
    right = [FORWARD, STOP]
    assert colours(right, right) == {RIGHT}
    assert colours([FORWARD, FORWARD, STOP], right) == {RIGHT}, "a wall stops it at the same square"
    assert colours([STOP], right) == {WRONG}
    assert colours([FORWARD], right) == {WRONG}, "it never stopped"
    assert colours([FORWARD, STOP], None) == {FAINT}


def test_places_are_the_middles_of_squares() -> None:
    found = places(CELLS, START, [FORWARD, LEFT, STOP])
    middle = (TILE - 1) / 2
    assert found.tolist() == [[2 * TILE + middle, TILE + middle], *3 * [[TILE + middle, TILE + middle]]]


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(UserError, match="taller than 200 inches; give fewer"):
        draw([Walked(CELLS, START, [STOP], None, "stop")] * 400)
