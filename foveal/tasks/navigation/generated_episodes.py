"""Computed navigation episodes: a map, a start, an instruction, and the path that the instruction describes.

The episodes are the same on every machine, since only `random()` of Python's generator is used.
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
"""Side of a map within the outer walls, fraction of walls inside, and number of different things."""
MIN_MOVES, MAX_MOVES = 4, 16
"""Smallest and largest number of moves of a path, without the stop."""
OMITTED_SIDE_PROBABILITY = 0.25
"""Probability that an instruction leaves out the side of a turn that can be found by looking.

If all such turns left out their sides, 99.8 % of the instructions would still fit only one goal, since
shortest paths do not turn back.
"""
EPISODE_COUNTS = {"train": 150_000, "valid": 500, "test": 1_000}
"""Number of maps, each with one instruction."""
STEP_PHRASES = ("one step", "two steps", "three steps", "four steps", "five steps", "six steps")


class StraightSegment(NamedTuple):
    """A straight segment of a path."""

    turns: list[int]
    """The moves before the segment."""
    steps: int
    passed: list[str]
    """The things next to the squares between the segment's ends."""
    end: str | None
    """The thing or wall in front of the segment's last square, or next to it. None if there is none."""


def make_episodes(log: Log) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the splits. No map is in more than one split."""
    rows = _distinct_episodes(Random(0))
    for split, count in EPISODE_COUNTS.items():
        split_rows = log_progress(islice(rows, count), count, f"maps ({split})", log)
        yield f"{split}.jsonl", "".join(f"{json.dumps(row)}\n" for row in split_rows).encode()


def _distinct_episodes(rng: Random) -> Iterator[dict[str, Any]]:
    """Yield an endless sequence of episodes, each on a different map."""
    earlier_maps = set[str]()
    while True:
        row = random_episode(rng)
        text = "".join(row["map"])
        if text not in earlier_maps:
            earlier_maps.add(text)
            yield row


def random_episode(rng: Random) -> dict[str, Any]:
    """Return a random row of the data. Its path is a shortest path."""
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
    """Return a map with outer walls, and random walls and things inside."""
    squares = [WALL if rng.random() < WALL_FRACTION else FLOOR for _ in range(INNER_SIDE**2)]
    indices = sorted(range(INNER_SIDE**2), key=lambda _: rng.random())
    things = sorted(THINGS, key=lambda _: rng.random())
    for index, thing in zip(indices[:NUM_THINGS], things, strict=False):
        squares[index] = thing
    inner = ("".join(squares[INNER_SIDE * row : INNER_SIDE * (row + 1)]) for row in range(INNER_SIDE))
    wall = WALL * (INNER_SIDE + 2)
    return [wall, *(f"{WALL}{row}{WALL}" for row in inner), wall]


def straight_segments(cells: MapArray, start: Pose, moves: Sequence[int]) -> list[StraightSegment]:
    """Return the straight segments of a path that ends with a step forward."""
    row, column, heading = start
    segments: list[StraightSegment] = []
    turns: list[int] = []
    for move, repeated in groupby(moves):
        count = len([*repeated])
        if move != FORWARD:
            turns = count * [move]
            heading = (heading + (count if move == RIGHT else -count)) % len(HEADINGS)
            continue
        adjacent = []
        for _ in range(count):
            row, column = row + HEADING_OFFSETS[heading][0], column + HEADING_OFFSETS[heading][1]
            adjacent.append(_adjacent_things(cells, (row, column, heading)))
        front = SYMBOLS[cells[row + HEADING_OFFSETS[heading][0], column + HEADING_OFFSETS[heading][1]]]
        end = adjacent[-1][0] if adjacent[-1] else "wall" if front == WALL else None
        passed = [thing for things in adjacent[:-1] for thing in things]
        segments.append(StraightSegment(turns, count, passed, end))
        turns = []
    return segments


def describe_path(segments: Sequence[StraightSegment], rng: Random) -> str:
    """Describe a path, for example `turn left, pass the red lamp, turn right at the wall, go two steps,
    stop`.

    The instruction gives the end or the length of each segment, and at random a thing that the segment
    passes. If the segment after a turn ends at a thing, the instruction sometimes leaves out the side of the
    turn.
    """
    phrases = [_turn_phrase(segments[0], rng)] if segments[0].turns else []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        action = "stop" if following is None else _turn_phrase(following, rng)
        if segment.end is None:
            phrases += [f"go {STEP_PHRASES[segment.steps - 1]}", action]
            continue
        if segment.passed and rng.random() < 0.5:
            phrases.append(f"pass the {segment.passed[-1]}")
        phrases.append(f"{action} at the {segment.end}")
    return ", ".join(phrases)


def _turn_phrase(segment: StraightSegment, rng: Random) -> str:
    if segment.end not in (None, "wall") and rng.random() < OMITTED_SIDE_PROBABILITY:
        return "turn"
    return "turn around" if len(segment.turns) > 1 else f"turn {MOVES[segment.turns[0]]}"


def _adjacent_things(cells: MapArray, pose: Pose) -> list[str]:
    """Return the things in front, to the left and to the right."""
    row, column, heading = pose
    sides = (HEADING_OFFSETS[(heading + turn) % len(HEADINGS)] for turn in (0, -1, 1))
    symbols = (SYMBOLS[cells[row + down, column + right]] for down, right in sides)
    return [THINGS[symbol] for symbol in symbols if symbol in THINGS]
