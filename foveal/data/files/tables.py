"""Columns of a table: `.jsonl`, `.csv`, `.tsv` (standard library) and `.parquet` (pyarrow).

Rows are read one after the other, so a table of any size needs the memory of a row (Parquet: of a batch of
rows), and a damaged row harms no other.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record, as_texts, text_error
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.lines import MAX_LINE_BYTES, Line, LineReader
from foveal.data.files.utf8 import AnyPath, open_file

TABLE_SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet")
NO_LINE_LIMIT = 1 << 60
COLUMN_HINT = "set data.text=NAME, data.label=NAME, data.source=NAME or data.target=NAME"
TEXT_COLUMN_HINT = (
    "set data.text=NAME, and data.label=NAME beside it to learn labels; or data.source=NAME and "
    "data.target=NAME to learn pairs, data.tags=NAME to learn tags of 'tokens' (or say --task)"
)
MAX_COLUMNS_SHOWN, MAX_NAME_SHOWN = 20, 40
"""So many columns are named, and so much of each name."""


def read_table(path: Path, column: str) -> Iterator[tuple[str, str]]:
    """Each row's place ("line 7") and text, in order. Errors: UserError names the first row without text."""
    for place, found in read_records(path, [column], TEXT_COLUMN_HINT, NO_LINE_LIMIT):
        why = found if isinstance(found, str) else text_error(column, found[column])
        if isinstance(found, str) or why:
            raise UserError(f"{path}, {place}: {why}")
        yield place, found[column]


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[Row | SkippedRow]:
    """The `columns` of a table, as texts.

    Errors: UserError for what concerns the whole file: it is missing, no table or damaged, lacks one of the
    columns, or has no row that can be used.
    """
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise UserError(
            f"{path}: not a table with columns {', '.join(columns)} ({', '.join(TABLE_SUFFIXES)})"
        )
    yield from validate_rows(str(path), read_records(path, columns), as_texts)


def read_records(
    path: AnyPath, columns: Sequence[str], hint: str = COLUMN_HINT, max_bytes: int = MAX_LINE_BYTES
) -> Iterator[Record]:
    """Each row's `columns`, whatever is in them. `hint` says how a user names the columns.

    Errors: UserError for a file that is no such table, or a header without one of the columns.
    """
    read = {".jsonl": _jsonl, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}[path.suffix.lower()]
    return read(path, columns, hint, max_bytes)


def column_names(path: AnyPath) -> list[str]:
    """The names of a table's columns; of a `.jsonl` those of its first row. Errors: as above."""
    if path.suffix.lower() == ".parquet":
        with _open_parquet(path) as table:
            return table.schema_arrow.names
    with open_file(path) as file:
        lines = LineReader(file.readline)
        if path.suffix.lower() != ".jsonl":
            return _header(path, lines, MAX_LINE_BYTES)[0]
        rows = (_parse_object(line.text) for line in lines)
        return next((list(row) for row in rows if not isinstance(row, str)), [])


def _missing_column(columns: Sequence[str], known: Sequence[str], hint: str, where: str = "") -> str:
    """Which of `columns` is not known, the known ones, and how to mend that; empty if all are."""
    for column in columns:
        if column not in known:
            names = ", ".join(f"'{name[:MAX_NAME_SHOWN]}'" for name in known[:MAX_COLUMNS_SHOWN])
            more = " ..." if len(known) > MAX_COLUMNS_SHOWN else ""
            return f"no column '{column}' among {names}{more}{where}; {hint}"
    return ""


def _jsonl(path: AnyPath, columns: Sequence[str], hint: str, max_bytes: int) -> Iterator[Record]:
    with open_file(path) as file:
        for number, text, why in LineReader(file.readline, max_bytes):
            if not why and not text.strip():
                continue
            row = why or _parse_object(text)
            if not isinstance(row, str):
                row = _missing_column(columns, list(row), hint) or {column: row[column] for column in columns}
            yield f"line {number}", row


def _parse_object(text: str) -> Fields | str:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}; mend the row or leave it out"
    return row if isinstance(row, dict) else 'a JSON object is needed, such as {"text": "..."}'


def _csv(path: AnyPath, columns: Sequence[str], hint: str, max_bytes: int) -> Iterator[Record]:
    with open_file(path) as file:
        lines = LineReader(file.readline, max_bytes)
        header, separator = _header(path, lines, max_bytes)
        if why := _missing_column(columns, header, hint, " (the first line)"):
            raise UserError(f"{path}: {why}")
        places = {column: header.index(column) for column in columns}
        for line in lines:
            if not line.reason and not line.text.strip("\r\n"):
                continue
            fields = _fields(line, lines, separator, max_bytes)
            if isinstance(fields, str):
                yield f"line {line.number}", fields
            elif len(fields) == len(header):
                yield f"line {line.number}", {column: fields[i] for column, i in places.items()}
            else:
                why = f"{len(fields)} fields where the header has {len(header)}"
                yield (
                    f"line {line.number}",
                    f"{why}; mend the row (fields with the separator in them need quotes)",
                )


def _header(path: AnyPath, lines: LineReader, max_bytes: int) -> tuple[list[str], str]:
    """The names of the columns, and what separates them: tabs in a `.tsv`; in a `.csv` commas, or if its
    header has none semicolons or tabs, as spreadsheets write them in many countries."""
    csv.field_size_limit(2**31 - 1)  # of all readers, and too small as Python has it
    first = next(lines, None)
    if first is None:
        raise UserError(f"{path}, line 1: empty; give rows")
    separators = "\t" if path.suffix.lower() == ".tsv" else ",;\t"
    separator = next((mark for mark in separators if mark in first.text), separators[0])
    header = _fields(first, lines, separator, max_bytes)
    if isinstance(header, str):
        raise UserError(f"{path}, line 1: {header}")
    return header, separator


def _fields(line: Line, lines: LineReader, separator: str, max_bytes: int) -> list[str] | str:
    """The fields of the row that begins with `line`, and goes on in `lines` where quotes hold line ends.

    If the quotes are broken no more than `line` is lost: else a forgotten one would take all rows after it.
    Where tabs separate, broken quotes are ordinary characters, as in text that nobody has quoted.
    """
    plain = line.text.rstrip("\r\n").split(separator)
    if line.reason or '"' not in line.text:
        return line.reason or plain
    taken: list[Line] = []
    try:
        fields = next(
            csv.reader(_continued_row(line, lines, taken, max_bytes), delimiter=separator, strict=True)
        )
        if separator != "\t" or not any("\t" in field and "\n" in field for field in fields):
            return fields
        why = ""
    except csv.Error as error:
        why = f"quotes that don't close ({error}); mend the row (a quote within quotes is written twice)"
    lines.unread(taken)
    return plain if separator == "\t" else why


def _continued_row(line: Line, lines: LineReader, taken: list[Line], max_bytes: int) -> Iterator[str]:
    """The text of `line`, then of the lines after it, `taken` as they are asked for; at most `max_bytes`."""
    yield line.text
    size = len(line.text)
    for more in lines:
        taken.append(more)
        size += len(more.text)
        if more.reason or size > max_bytes:
            return
        yield more.text


def _parquet(path: AnyPath, columns: Sequence[str], hint: str, max_bytes: int) -> Iterator[Record]:
    number = 0
    with _open_parquet(path) as table:
        if why := _missing_column(columns, table.schema_arrow.names, hint):
            raise UserError(f"{path}: {why}")
        for batch in table.iter_batches(batch_size=128, columns=[*columns]):
            for values in zip(*(batch.column(name) for name in columns), strict=True):
                number += 1
                yield f"row {number}", _row_values(columns, values)


def _row_values(columns: Sequence[str], values: Sequence[Any]) -> Fields | str:
    try:
        return {column: value.as_py() for column, value in zip(columns, values, strict=True)}
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start} of a text; mend the row or leave it out"


@contextmanager
def _open_parquet(path: AnyPath) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    open_file(path).close()
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            yield table
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not readable as Parquet: {str(error).splitlines()[0]}") from None
