"""Generated navigation episodes: a map, a start, a sentence for the path, and the path.

The episodes are the same on every machine: of Python's generator only `random()` is used.
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
"""Squares of the inner side, the probability of a wall on each, and the number of things, all different."""
MIN_MOVES, MAX_MOVES = 4, 16
"""Moves of a path, without the stop."""
OMITTED_SIDE_PROBABILITY = 0.25
"""The probability that a turn does not say its side, where the agent can see which side is meant. If every
such turn omitted the side, only one end would fit the instruction in 99.8 % of the episodes, as a shortest
path does not turn back."""
EPISODE_COUNTS = {"train": 150_000, "valid": 500, "test": 1_000}
"""Maps of each split, with one episode each."""
STEP_PHRASES = ("one step", "two steps", "three steps", "four steps", "five steps", "six steps")


class StraightSegment(NamedTuple):
    """A straight part of a path."""

    turns: list[int]
    """The turns before the segment."""
    steps: int
    passed: list[str]
    """Things beside the squares between the segment's ends."""
    end: str | None
    """The thing in front of the last square or beside it, if any."""


def make_episodes(log: Log) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the splits. No map is in two of them."""
    rows = _distinct_episodes(Random(0))
    for part, count in EPISODE_COUNTS.items():
        episodes = log_progress(islice(rows, count), count, f"maps ({part})", log)
        yield f"{part}.jsonl", "".join(f"{json.dumps(row)}\n" for row in episodes).encode()


def _distinct_episodes(rng: Random) -> Iterator[dict[str, Any]]:
    """Yield episodes without end, each on another map."""
    seen = set[str]()
    while True:
        row = random_episode(rng)
        cells = "".join(row["map"])
        if cells not in seen:
            seen.add(cells)
            yield row


def random_episode(rng: Random) -> dict[str, Any]:
    """Return a row of the data with a shortest path."""
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
    """Return a map: walls around it, and walls and things within."""
    squares = [WALL if rng.random() < WALL_FRACTION else FLOOR for _ in range(INNER_SIDE**2)]
    places = sorted(range(INNER_SIDE**2), key=lambda _: rng.random())
    things = sorted(THINGS, key=lambda _: rng.random())
    for place, thing in zip(places[:NUM_THINGS], things, strict=False):
        squares[place] = thing
    inner = ("".join(squares[INNER_SIDE * row : INNER_SIDE * (row + 1)]) for row in range(INNER_SIDE))
    wall = WALL * (INNER_SIDE + 2)
    return [wall, *(f"{WALL}{row}{WALL}" for row in inner), wall]


def straight_segments(cells: MapArray, start: Pose, moves: Sequence[int]) -> list[StraightSegment]:
    """Return the straight segments of a path that ends with a step forward."""
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
    """Return the path in words, such as `turn left, pass the red lamp, turn right at the wall, go two steps,
    stop`.

    The words say where each straight segment ends, or how long it is, and at random what it passes. Some
    turns do not say to which side, if a thing stands at the end of the segment behind them.
    """
    phrases = [_turn_phrase(parts[0], rng)] if parts[0].turns else []
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        then = "stop" if after is None else _turn_phrase(after, rng)
        if part.end is None:
            phrases += [f"go {STEP_PHRASES[part.steps - 1]}", then]
            continue
        if part.passed and rng.random() < 0.5:
            phrases.append(f"pass the {part.passed[-1]}")
        phrases.append(f"{then} at the {part.end}")
    return ", ".join(phrases)


def _turn_phrase(part: StraightSegment, rng: Random) -> str:
    if part.end not in (None, "wall") and rng.random() < OMITTED_SIDE_PROBABILITY:
        return "turn"
    return "turn around" if len(part.turns) > 1 else f"turn {MOVES[part.turns[0]]}"


def _adjacent_things(cells: MapArray, pose: Pose) -> list[str]:
    """Return the things in front, to the left and to the right."""
    row, column, heading = pose
    sides = (HEADING_OFFSETS[(heading + turn) % len(HEADINGS)] for turn in (0, -1, 1))
    symbols = (SYMBOLS[cells[row + down, column + right]] for down, right in sides)
    return [THINGS[symbol] for symbol in symbols if symbol in THINGS]
