"""The columns of the rows that a model answers, which are written beside the answers."""

import os
from collections.abc import Iterator, Sequence

from foveal.data.core.fields import Fields
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DAMAGED_ZIP_ERRORS, DataPart
from foveal.data.files.folders import FILE_NAME_COLUMN
from foveal.data.files.json_rows import read_json_rows
from foveal.data.files.lines import LineReader
from foveal.data.files.part_rows import shard_name
from foveal.data.files.tables import column_names, parse_object, read_records
from foveal.data.files.utf8 import AnyPath, open_lines

PLACE_COLUMN = "row"
"""The column with the place of a row in a file without columns, such as "series 3"."""
MAX_ROW_BYTES = 1 << 26
"""Largest number of bytes of a row whose columns are kept, as of a series."""


def place_columns(part: DataPart, location: str) -> Fields:
    """Return the file of a row, relative to the folder that the user names, or around the file that the user
    names; or the row's place in a file."""
    if part.is_folder:
        return {FILE_NAME_COLUMN: os.path.relpath(location, part.location)}
    if location == str(part.path):
        return {FILE_NAME_COLUMN: os.path.basename(part.location)}
    return {PLACE_COLUMN: location.removeprefix(f"{part.path}").lstrip("/,").strip()}


def shard_columns(tables: Sequence[AnyPath], encoding: str, rows: Sequence[Row | SkippedRow]) -> list[Fields]:
    """Return all columns of each row of a table, or of several tables that are shards.

    The location of a row ends with its place, such as "line 7", after the path of the shard, or its
    `shard_name`. A damaged row has no columns.
    """
    columns = [_table_columns(table, encoding) for table in tables]
    first = str(tables[0])
    shards = {
        f"{first}, {shard_name(tables[0], table)}": each for table, each in zip(tables, columns, strict=True)
    }
    shards |= zip(map(str, tables), columns, strict=True)
    row_columns = []
    for row in rows:
        shard, _, place = row.location.rpartition(", ")
        row_columns.append(shards.get(shard, columns[0]).get(place, {}))
    return row_columns


def _table_columns(table: AnyPath, encoding: str) -> dict[str, Fields]:
    """Return all columns of each row by the row's place."""
    try:
        return dict(_whole_rows(table, encoding))
    except DAMAGED_ZIP_ERRORS:
        return {}


def _whole_rows(table: AnyPath, encoding: str) -> Iterator[tuple[str, Fields]]:
    if table.suffix.lower() == ".jsonl":
        yield from _json_lines(table, encoding)
        return
    if table.suffix.lower() == ".json":
        yield from (
            (place, {} if isinstance(row, str) else row) for place, row in read_json_rows(table, encoding)
        )
        return
    names = [*dict.fromkeys(column_names(table, encoding))]
    for location, record in read_records(table, names, max_bytes=MAX_ROW_BYTES, encoding=encoding):
        yield location, {} if isinstance(record, str) else record


def _json_lines(table: AnyPath, encoding: str) -> Iterator[tuple[str, Fields]]:
    with open_lines(table) as file:
        for line in LineReader(file.readline, MAX_ROW_BYTES, encoding):
            row = parse_object(line.text)
            yield f"line {line.number}", row if isinstance(row, dict) else {}
