"""Walks on their maps: where the line goes, and in which colour."""

import io
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image, ImageColor

from foveal.core.errors import UserError
from foveal.inspection.style import CORRECT_COLOR, HIGHLIGHT_COLOR, MUTED_COLOR
from foveal.tasks.navigation.grid_world import FORWARD, LEFT, MAP_MARGIN, STOP, TILE_PIXELS, parse_map
from foveal.tasks.navigation.plot import (
    EpisodePath,
    path_positions,
    plot_episodes,
)

CELLS = parse_map(["#####", "#...#", "#.b.#", "#####"])
START = (2 + MAP_MARGIN, 1 + MAP_MARGIN, 0)


def colours(moves: Sequence[int], reference: Sequence[int] | None) -> set[str]:
    """Those of lines in the picture of one walk."""
    png = plot_episodes([EpisodePath(CELLS, START, moves, reference, "turn at the $green$ table, " * 4)])
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    # Lines are drawn at 0.8 over what lies below; the arrow is not.
    return {
        name
        for name in (CORRECT_COLOR, HIGHLIGHT_COLOR, MUTED_COLOR)
        if (abs(pixels - ImageColor.getrgb(name)).max(-1) < 3).any()
    }


def test_a_walk_has_the_colour_of_its_end() -> None:
    right = [FORWARD, STOP]
    assert colours(right, right) == {CORRECT_COLOR}
    assert colours([FORWARD, FORWARD, STOP], right) == {CORRECT_COLOR}, "a wall stops it at the same square"
    assert colours([STOP], right) == {HIGHLIGHT_COLOR}
    assert colours([FORWARD], right) == {HIGHLIGHT_COLOR}, "it never stopped"
    assert colours([FORWARD, STOP], None) == {MUTED_COLOR}


def test_places_are_the_middles_of_squares() -> None:
    found = path_positions(CELLS, START, [FORWARD, LEFT, STOP])
    middle = (TILE_PIXELS - 1) / 2
    assert found.tolist() == [
        [2 * TILE_PIXELS + middle, TILE_PIXELS + middle],
        *3 * [[TILE_PIXELS + middle, TILE_PIXELS + middle]],
    ]


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(UserError, match="taller than 200 inches; give fewer"):
        plot_episodes([EpisodePath(CELLS, START, [STOP], None, "stop")] * 400)
