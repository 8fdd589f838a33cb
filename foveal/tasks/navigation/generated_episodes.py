"""Errands in a world of squares, computed: a map, a pose to begin with, a sentence for the way, and the way.

They are the same on every machine: of Python's generator only `random()` is used.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from random import Random
from typing import Any, NamedTuple

import numpy as np

from foveal.core.log import Say, counted
from foveal.tasks.navigation.grid_world import (
    AHEAD,
    FLOOR,
    FORWARD,
    HEADINGS,
    MARGIN,
    MOVES,
    RIGHT,
    STOP,
    SYMBOLS,
    THINGS,
    WALL,
    Cells,
    Pose,
    cells_of,
    shortest,
)

WITHIN, WALLS, PLACED = 7, 0.2, 8
"""Squares within the outer walls to a side, the share of walls among them, and things, no two alike."""
LEAST, MOST = 4, 16
"""Moves of a way, its stop aside."""
UNSAID = 0.25
"""The chance that a turn leaves out its side, where that can be found out by looking: if every such turn did,
one end alone would fit what is said of 99.8 % of the errands, as a shortest way does not turn back."""
COUNTS = {"train": 150_000, "valid": 500, "test": 1_000}
"""Maps, with an errand each."""
NUMBERS = ("one step", "two steps", "three steps", "four steps", "five steps", "six steps")


class Straight(NamedTuple):
    """A straight part of a way."""

    turns: list[int]
    """The moves before it."""
    steps: int
    passed: list[str]
    """What stands beside the squares between its ends."""
    end: str | None
    """What stands in front of its last square, or beside it, if anything does."""


def errands(say: Say) -> Iterator[tuple[str, bytes]]:
    """The files of the parts; no map is in two of them."""
    rows = _different(Random(0))
    for part, count in COUNTS.items():
        drawn = counted(islice(rows, count), count, f"maps ({part})", say)
        yield f"{part}.jsonl", "".join(f"{json.dumps(row)}\n" for row in drawn).encode()


def _different(chance: Random) -> Iterator[dict[str, Any]]:
    """Errands without end, each on a map of its own."""
    seen = set[str]()
    while True:
        row = an_errand(chance)
        drawn = "".join(row["map"])
        if drawn not in seen:
            seen.add(drawn)
            yield row


def an_errand(chance: Random) -> dict[str, Any]:
    """A row of the data: the way is a shortest one."""
    while True:
        rows = a_map(chance)
        cells = cells_of(rows)
        floor = np.argwhere(cells == 0).tolist()
        (row, column), (down, right) = (floor[int(len(floor) * chance.random())] for _ in range(2))
        start = row, column, int(len(HEADINGS) * chance.random())
        moves = shortest(cells, start, (down, right))
        if moves is not None and LEAST <= len(moves) <= MOST:
            return {
                "map": rows,
                "instruction": told(straights(cells, start, moves), chance),
                "start": [row - MARGIN, column - MARGIN, HEADINGS[start[2]]],
                "path": " ".join(MOVES[move] for move in [*moves, STOP]),
            }


def a_map(chance: Random) -> list[str]:
    """Walls around, walls and things within."""
    squares = [WALL if chance.random() < WALLS else FLOOR for _ in range(WITHIN**2)]
    places = sorted(range(WITHIN**2), key=lambda _: chance.random())
    things = sorted(THINGS, key=lambda _: chance.random())
    for place, thing in zip(places[:PLACED], things, strict=False):
        squares[place] = thing
    inner = ("".join(squares[WITHIN * row : WITHIN * (row + 1)]) for row in range(WITHIN))
    wall = WALL * (WITHIN + 2)
    return [wall, *(f"{WALL}{row}{WALL}" for row in inner), wall]


def straights(cells: Cells, start: Pose, moves: Sequence[int]) -> list[Straight]:
    """The straight parts of a way that ends with a step forward."""
    row, column, heading = start
    parts: list[Straight] = []
    turns: list[int] = []
    for move, same in groupby(moves):
        count = len([*same])
        if move != FORWARD:
            turns = count * [move]
            heading = (heading + (count if move == RIGHT else -count)) % len(HEADINGS)
            continue
        near = []
        for _ in range(count):
            row, column = row + AHEAD[heading][0], column + AHEAD[heading][1]
            near.append(_near(cells, (row, column, heading)))
        front = SYMBOLS[cells[row + AHEAD[heading][0], column + AHEAD[heading][1]]]
        end = near[-1][0] if near[-1] else "wall" if front == WALL else None
        parts.append(Straight(turns, count, [thing for things in near[:-1] for thing in things], end))
        turns = []
    return parts


def told(parts: Sequence[Straight], chance: Random) -> str:
    """The way in words, such as `turn left, pass the red lamp, turn right at the wall, go two steps, stop`:
    where each straight part ends, or how long it is, and by chance what is passed.

    Some turns do not say to which side, if a thing stands at the end of the part behind them.
    """
    said = [_turn(parts[0], chance)] if parts[0].turns else []
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        then = "stop" if after is None else _turn(after, chance)
        if part.end is None:
            said += [f"go {NUMBERS[part.steps - 1]}", then]
            continue
        if part.passed and chance.random() < 0.5:
            said.append(f"pass the {part.passed[-1]}")
        said.append(f"{then} at the {part.end}")
    return ", ".join(said)


def _turn(part: Straight, chance: Random) -> str:
    if part.end not in (None, "wall") and chance.random() < UNSAID:
        return "turn"
    return "turn around" if len(part.turns) > 1 else f"turn {MOVES[part.turns[0]]}"


def _near(cells: Cells, pose: Pose) -> list[str]:
    """The things in front, to the left and to the right."""
    row, column, heading = pose
    sides = (AHEAD[(heading + turn) % len(HEADINGS)] for turn in (0, -1, 1))
    symbols = (SYMBOLS[cells[row + down, column + right]] for down, right in sides)
    return [THINGS[symbol] for symbol in symbols if symbol in THINGS]
