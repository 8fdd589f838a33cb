"""The columns of the rows that a model answers, which are written beside the answers."""

import os
from collections.abc import Iterator

from foveal.core.parse_json import parse_json
from foveal.data.core.fields import Fields
from foveal.data.files.data_part import DAMAGED_ZIP_ERRORS, DataPart
from foveal.data.files.folders import FILE_NAME_COLUMN
from foveal.data.files.lines import LineReader
from foveal.data.files.tables import column_names, read_records
from foveal.data.files.utf8 import AnyPath, open_file

PLACE_COLUMN = "row"
"""The column with the place of a row in a file without columns, such as "series 3"."""
MAX_ROW_BYTES = 1 << 26
"""Largest number of bytes of a row whose columns are kept, as of a series."""


def place_columns(part: DataPart, location: str) -> Fields:
    """Return the file of a row, relative to the folder of the data, or the row's place in a file."""
    if part.is_folder:
        return {FILE_NAME_COLUMN: os.path.relpath(location, part.location)}
    if location == str(part.path):
        return {FILE_NAME_COLUMN: part.location}
    return {PLACE_COLUMN: location.removeprefix(f"{part.path}").lstrip("/,").strip()}


def table_columns(table: AnyPath) -> dict[str, Fields]:
    """Return all columns of each row of a table by the row's location, such as "line 7".

    A damaged row has no columns.
    """
    try:
        return dict(_whole_rows(table))
    except DAMAGED_ZIP_ERRORS:
        return {}


def _whole_rows(table: AnyPath) -> Iterator[tuple[str, Fields]]:
    if table.suffix.lower() == ".jsonl":
        yield from _json_lines(table)
        return
    names = [*dict.fromkeys(column_names(table))]
    for location, record in read_records(table, names, max_bytes=MAX_ROW_BYTES):
        yield location, {} if isinstance(record, str) else record


def _json_lines(table: AnyPath) -> Iterator[tuple[str, Fields]]:
    with open_file(table) as file:
        for line in LineReader(file.readline, MAX_ROW_BYTES):
            try:
                row = parse_json(line.text)
            except ValueError:
                row = None
            yield f"line {line.number}", row if isinstance(row, dict) else {}
