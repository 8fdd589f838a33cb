"""Paths over their maps: where the line goes, and in which role."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from foveal.inspection.panels import Mark
from foveal.tasks.navigation.grid_world import FORWARD, LEFT, MAP_MARGIN, STOP, TILE_PIXELS, parse_map
from foveal.tasks.navigation.panels import EpisodePath, navigation_payload, path_positions

CELLS = parse_map(["#####", "#...#", "#.b.#", "#####"])
START = (2 + MAP_MARGIN, 1 + MAP_MARGIN, 0)


def marks(moves: Sequence[int], reference: Sequence[int] | None) -> list[Mark]:
    (images,) = navigation_payload("run", [EpisodePath(CELLS, START, moves, reference, "go")]).panels
    (tile,) = images.tiles()  # type: ignore[union-attr]
    return [*tile.marks]


def role(moves: Sequence[int], reference: Sequence[int] | None) -> str:
    *_, path, start = marks(moves, reference)
    assert start.end == "arrow"
    assert start.role == path.role
    return path.role


def test_a_path_has_the_role_of_its_end() -> None:
    right = [FORWARD, STOP]
    assert role(right, right) == "correct"
    assert role([FORWARD, FORWARD, STOP], right) == "correct", "a wall stops it at the same square"
    assert role([STOP], right) == "highlight"
    assert role([FORWARD], right) == "highlight", "it never stopped"
    assert role([FORWARD, STOP], None) == "muted"


def test_the_reference_is_dotted_and_ends_in_a_star() -> None:
    reference, path, _ = marks([FORWARD], [FORWARD, STOP])
    assert (reference.dotted, reference.end) == (True, "star")
    assert (path.dotted, path.end) == (False, "cross")
    assert np.array_equal(reference.points[-1], path.points[-1])
    assert len(marks([FORWARD], None)) == 2


def test_places_are_the_middles_of_squares() -> None:
    found = path_positions(CELLS, START, [FORWARD, LEFT, STOP])
    middle = (TILE_PIXELS - 1) / 2
    assert found.tolist() == [
        [2 * TILE_PIXELS + middle, TILE_PIXELS + middle],
        *3 * [[TILE_PIXELS + middle, TILE_PIXELS + middle]],
    ]


def test_facts_have_the_moves_and_instructions_are_captions() -> None:
    long = "turn at the $green$ table, " * 4
    payload = navigation_payload("run", [EpisodePath(CELLS, START, [FORWARD, STOP], None, long)] * 4)
    images: Any = payload.panels[0]
    assert [len(row.tiles) for row in images.rows] == [3, 1]
    lines = [caption.text for caption in images.tiles()[0].captions]
    assert " ".join(lines) == long.strip()
    assert max(map(len, lines)) <= 48
    assert payload.facts[1] == ("moves", payload.values["episodes"][0]["moves"])
