"""Episodes from JSON lines: checked rows with a map, an instruction, a start and a path."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import read_records
from foveal.tasks.navigation.grid_world import (
    FLOOR,
    HEADINGS,
    MAP_MARGIN,
    MOVES,
    STOP,
    SYMBOLS,
    MapArray,
    Pose,
    parse_map,
    parse_moves,
    path_poses,
)

INPUT_COLUMNS, EPISODE_COLUMNS = ("map", "instruction", "start"), ("map", "instruction", "start", "path")
MAX_MAP_SIDE = 64
"""Largest side of a map in squares."""
ROW_HINT = "a row needs a map, an instruction, a start and a path"


def read_episodes(part: DataPart, columns: Sequence[str]) -> Iterator[Row | SkippedRow]:
    """Read the episodes of a file, with a path or, for `INPUT_COLUMNS`, without a path.

    The fields are `map`, `source` (the instruction), `cells` and `start` with the margin, `path` (moves with
    the stop) and `goal`.

    Raises: UserError: the file can't be read, or has no usable row.
    """
    if part.suffix != ".jsonl":
        raise UserError(f"{part}: maps are read from JSON lines; give a .jsonl: {ROW_HINT}")
    return chain.from_iterable(
        validate_rows(
            str(file), read_records(file, columns, ROW_HINT, encoding=part.encoding), episode_fields
        )
        for file in part.files
    )


def episode_fields(record: Fields) -> Fields | str:
    """Return the fields of a row, or the reason why the row can't be used."""
    rows, start = record["map"], record["start"]
    texts = as_texts({"instruction": record["instruction"]})
    if isinstance(texts, str):
        return texts
    if error := _map_error(rows) or _start_error(rows, start):
        return error
    cells, pose = parse_map(rows), (start[0] + MAP_MARGIN, start[1] + MAP_MARGIN, HEADINGS.index(start[2]))
    fields: Fields = {"map": rows, "source": texts["instruction"].strip(), "cells": cells, "start": pose}
    if "path" not in record:
        return fields
    path = _path_fields(record["path"], cells, pose)
    return path if isinstance(path, str) else fields | path


def _path_fields(text: object, cells: MapArray, start: Pose) -> Fields | str:
    """Return the moves and the square to which they lead, or the reason why the path can't be used."""
    if not isinstance(text, str) or not text.split():
        return "its path is no text of moves; write some, as in 'left forward forward stop'"
    if unknown := next((word for word in text.split() if word not in MOVES), None):
        return f"its path has '{unknown}', which is none of {', '.join(MOVES)}; fix it"
    moves = parse_moves(text)
    moves += [STOP] if moves[-1] != STOP else []
    if STOP in moves[:-1]:
        return "its path goes on after a stop; end it there"
    poses = path_poses(cells, start, moves)
    for number, (before, after) in enumerate(pairwise(poses[:-1]), 1):
        if before == after:
            return f"move {number} of its path goes against a wall or a thing; fix the path or the map"
    return {"path": moves, "goal": poses[-1][:2]}


def _map_error(rows: object) -> str:
    """Say what is wrong with a map. Empty if the map is valid."""
    if not isinstance(rows, list) or not rows or not all(isinstance(row, str) and row for row in rows):
        return "its map is no list of texts, one for each row of squares; write it so"
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            return f"row {number} of its map has {len(row)} squares, and the first {len(rows[0])}; fix it"
        if unknown := next((symbol for symbol in row if symbol not in SYMBOLS), None):
            return f"row {number} of its map has {unknown!r}, which is none of {SYMBOLS}; fix it"
    size = max(len(rows), len(rows[0]))
    return (
        f"its map is {size} squares long, and {MAX_MAP_SIDE} are the most; cut it"
        if size > MAX_MAP_SIDE
        else ""
    )


def _start_error(rows: list[str], start: object) -> str:
    """Say what is wrong with the start on a map. Empty if the start is valid."""
    if not isinstance(start, list) or len(start) != 3 or start[2] not in HEADINGS:
        return f'its start is no row, column and one of {", ".join(HEADINGS)}, as in [3, 1, "east"]; fix it'
    row, column = start[:2]
    if type(row) is not int or type(column) is not int:
        return "its start has no whole numbers for row and column, counted from 0; fix it"
    if not (0 <= row < len(rows) and 0 <= column < len(rows[0]) and rows[row][column] == FLOOR):
        return f"its start, row {row} and column {column} from 0, is no floor of its map; fix it"
    return ""
