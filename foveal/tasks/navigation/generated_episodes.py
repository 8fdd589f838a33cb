"""Errands in a world of squares, computed: a map, a pose to begin with, a sentence for the way, and the way.

They are the same on every machine: of Python's generator only `random()` is used.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from random import Random
from typing import Any, NamedTuple

import numpy as np

from foveal.core.log import Log, log_progress
from foveal.tasks.navigation.grid_world import (
    FLOOR,
    FORWARD,
    HEADING_OFFSETS,
    HEADINGS,
    MAP_MARGIN,
    MOVES,
    RIGHT,
    STOP,
    SYMBOLS,
    THINGS,
    WALL,
    MapArray,
    Pose,
    parse_map,
    shortest_path,
)

INNER_SIDE, WALL_FRACTION, NUM_THINGS = 7, 0.2, 8
"""Squares within the outer walls to a side, the share of walls among them, and things, no two alike."""
MIN_MOVES, MAX_MOVES = 4, 16
"""Moves of a way, its stop aside."""
OMITTED_SIDE_PROBABILITY = 0.25
"""The chance that a turn leaves out its side, where that can be found out by looking: if every such turn did,
one end alone would fit what is said of 99.8 % of the errands, as a shortest way does not turn back."""
EPISODE_COUNTS = {"train": 150_000, "valid": 500, "test": 1_000}
"""Maps, with an errand each."""
STEP_PHRASES = ("one step", "two steps", "three steps", "four steps", "five steps", "six steps")


class StraightSegment(NamedTuple):
    """A straight part of a way."""

    turns: list[int]
    """The moves before it."""
    steps: int
    passed: list[str]
    """What stands beside the squares between its ends."""
    end: str | None
    """What stands in front of its last square, or beside it, if anything does."""


def make_episodes(log: Log) -> Iterator[tuple[str, bytes]]:
    """The files of the parts; no map is in two of them."""
    rows = _distinct_episodes(Random(0))
    for part, count in EPISODE_COUNTS.items():
        drawn = log_progress(islice(rows, count), count, f"maps ({part})", log)
        yield f"{part}.jsonl", "".join(f"{json.dumps(row)}\n" for row in drawn).encode()


def _distinct_episodes(rng: Random) -> Iterator[dict[str, Any]]:
    """Errands without end, each on a map of its own."""
    seen = set[str]()
    while True:
        row = random_episode(rng)
        drawn = "".join(row["map"])
        if drawn not in seen:
            seen.add(drawn)
            yield row


def random_episode(rng: Random) -> dict[str, Any]:
    """A row of the data: the way is a shortest one."""
    while True:
        rows = random_map(rng)
        cells = parse_map(rows)
        floor = np.argwhere(cells == 0).tolist()
        (row, column), (down, right) = (floor[int(len(floor) * rng.random())] for _ in range(2))
        start = row, column, int(len(HEADINGS) * rng.random())
        moves = shortest_path(cells, start, (down, right))
        if moves is not None and MIN_MOVES <= len(moves) <= MAX_MOVES:
            return {
                "map": rows,
                "instruction": describe_path(straight_segments(cells, start, moves), rng),
                "start": [row - MAP_MARGIN, column - MAP_MARGIN, HEADINGS[start[2]]],
                "path": " ".join(MOVES[move] for move in [*moves, STOP]),
            }


def random_map(rng: Random) -> list[str]:
    """Walls around, walls and things within."""
    squares = [WALL if rng.random() < WALL_FRACTION else FLOOR for _ in range(INNER_SIDE**2)]
    places = sorted(range(INNER_SIDE**2), key=lambda _: rng.random())
    things = sorted(THINGS, key=lambda _: rng.random())
    for place, thing in zip(places[:NUM_THINGS], things, strict=False):
        squares[place] = thing
    inner = ("".join(squares[INNER_SIDE * row : INNER_SIDE * (row + 1)]) for row in range(INNER_SIDE))
    wall = WALL * (INNER_SIDE + 2)
    return [wall, *(f"{WALL}{row}{WALL}" for row in inner), wall]


def straight_segments(cells: MapArray, start: Pose, moves: Sequence[int]) -> list[StraightSegment]:
    """The straight parts of a way that ends with a step forward."""
    row, column, heading = start
    parts: list[StraightSegment] = []
    turns: list[int] = []
    for move, same in groupby(moves):
        count = len([*same])
        if move != FORWARD:
            turns = count * [move]
            heading = (heading + (count if move == RIGHT else -count)) % len(HEADINGS)
            continue
        near = []
        for _ in range(count):
            row, column = row + HEADING_OFFSETS[heading][0], column + HEADING_OFFSETS[heading][1]
            near.append(_adjacent_things(cells, (row, column, heading)))
        front = SYMBOLS[cells[row + HEADING_OFFSETS[heading][0], column + HEADING_OFFSETS[heading][1]]]
        end = near[-1][0] if near[-1] else "wall" if front == WALL else None
        parts.append(StraightSegment(turns, count, [thing for things in near[:-1] for thing in things], end))
        turns = []
    return parts


def describe_path(parts: Sequence[StraightSegment], rng: Random) -> str:
    """The way in words, such as `turn left, pass the red lamp, turn right at the wall, go two steps, stop`:
    where each straight part ends, or how long it is, and by chance what is passed.

    Some turns do not say to which side, if a thing stands at the end of the part behind them.
    """
    said = [_turn_phrase(parts[0], rng)] if parts[0].turns else []
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        then = "stop" if after is None else _turn_phrase(after, rng)
        if part.end is None:
            said += [f"go {STEP_PHRASES[part.steps - 1]}", then]
            continue
        if part.passed and rng.random() < 0.5:
            said.append(f"pass the {part.passed[-1]}")
        said.append(f"{then} at the {part.end}")
    return ", ".join(said)


def _turn_phrase(part: StraightSegment, rng: Random) -> str:
    if part.end not in (None, "wall") and rng.random() < OMITTED_SIDE_PROBABILITY:
        return "turn"
    return "turn around" if len(part.turns) > 1 else f"turn {MOVES[part.turns[0]]}"


def _adjacent_things(cells: MapArray, pose: Pose) -> list[str]:
    """The things in front, to the left and to the right."""
    row, column, heading = pose
    sides = (HEADING_OFFSETS[(heading + turn) % len(HEADINGS)] for turn in (0, -1, 1))
    symbols = (SYMBOLS[cells[row + down, column + right]] for down, right in sides)
    return [THINGS[symbol] for symbol in symbols if symbol in THINGS]
