"""Columns of tables: `.jsonl`, `.json`, `.csv`, `.tsv` (standard library) and `.parquet` (pyarrow).

Rows are read one by one, so a table of any size needs the memory of a single row (Parquet: of a batch of
rows). A damaged row does not affect other rows.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_row
from foveal.data.core.fields import Fields, Record, as_texts, repeated_name_error, text_error
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.json_rows import UNFINISHED_JSON, describe_no_object, read_json_rows
from foveal.data.files.lines import MAX_LINE_BYTES, Line, LineReader
from foveal.data.files.parquet import parquet_columns, parquet_rows
from foveal.data.files.utf8 import AnyPath, open_lines

TABLE_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
NO_LINE_LIMIT = 1 << 60
COLUMN_HINT = (
    "give the table this column, or set data.text=NAME, data.label=NAME, data.source=NAME or data.target=NAME"
)
TEXT_COLUMN_HINT = (
    "give the table this column, or set data.text=NAME, and data.label=NAME beside it to learn "
    "labels; with data.source=NAME and data.target=NAME to learn pairs; with data.tags=NAME to learn tags of "
    "'tokens' (or with --task)"
)
NAMED_ROWS = 100
"""First rows of JSON whose names are columns, since a row may lack a column."""
FIXED_COLUMNS = ("file_name", "labels")
"""Columns that no setting names otherwise."""
REASON_KEY = "/reason"
"""The only key of a row of a rewritten table that could not be read. Its value says why."""
NAMED_SEPARATOR = re.compile(r"sep=([,;|\t])\s*", re.I)
UNQUOTED = "\t|"
"""Separators of tables in which quotes may be ordinary characters."""
MAX_COLUMNS_SHOWN, MAX_NAME_SHOWN = 20, 40
"""Columns listed in an error, and characters of each name."""


def read_table(path: AnyPath, column: str, encoding: str = "") -> Iterator[tuple[str, str]]:
    """Yield the location ("line 7") and the text of each row, in order.

    Raises: UserError: the table can't be read, or a row has no text.
    """
    for location, record in read_records(path, [column], TEXT_COLUMN_HINT, NO_LINE_LIMIT, encoding):
        reason = record if isinstance(record, str) else text_error(column, record[column])
        if isinstance(record, str) or reason:
            raise UserError(f"{path}, {location}: {reason}")
        yield location, record[column]


def read_rows(path: AnyPath, columns: Sequence[str], encoding: str = "") -> Iterator[Row | SkippedRow]:
    """Read the `columns` of a table as texts.

    Raises: UserError: the file is missing, damaged or not a table, lacks a column, or has no row that can be
        used.
    """
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise UserError(
            f"{path}: not a table with columns {', '.join(columns)} ({', '.join(TABLE_SUFFIXES)})"
        )
    yield from validate_rows(str(path), read_records(path, columns, encoding=encoding), as_texts)


def read_records(
    path: AnyPath,
    columns: Sequence[str],
    hint: str = COLUMN_HINT,
    max_bytes: int = MAX_LINE_BYTES,
    encoding: str = "",
) -> Iterator[Record]:
    """Read the `columns` of each row, with values of any type. `hint` tells a user how to name the columns.

    Lines that are not UTF-8 are decoded by `encoding`, if one is given.

    Raises: UserError: the file is not such a table, or its header lacks a column.
    """
    suffix = path.suffix.lower()
    if isinstance(path, Path) and suffix == ".parquet":
        return _parquet(path, columns, hint, max_bytes)
    if suffix == ".json":
        return _select_columns(read_json_rows(path, encoding), columns, hint)
    read = _jsonl if suffix == ".jsonl" else _csv
    return read(path, columns, hint, max_bytes, encoding)


def column_names(path: AnyPath, encoding: str = "") -> list[str]:
    """Return the names of a table's columns; for a `.jsonl` or `.json` those in its first `NAMED_ROWS` rows.

    Raises: UserError: the table can't be read.
    """
    if isinstance(path, Path) and path.suffix.lower() == ".parquet":
        return parquet_columns(path)
    if path.suffix.lower() == ".json":
        return _first_keys(path, read_json_rows(path, encoding))
    with open_lines(path) as file:
        lines = LineReader(file.readline, encoding=encoding)
        if path.suffix.lower() == ".jsonl":
            return _first_keys(path, _objects(lines))
        return _header(path, lines, MAX_LINE_BYTES)[0]


def table_separator(path: AnyPath, encoding: str = "") -> str:
    """Return the character between the fields of a `.csv` or `.tsv`.

    Raises: UserError: the table can't be read.
    """
    with open_lines(path) as file:
        return _header(path, LineReader(file.readline, encoding=encoding), MAX_LINE_BYTES)[1]


def _first_keys(path: AnyPath, rows: Iterable[tuple[str, Fields | str]]) -> list[str]:
    """Return the names in the first `NAMED_ROWS` objects, in the order in which they occur first.

    Raises: UserError: no row is an object.
    """
    reason, names, count = "", dict[str, None](), 0
    for location, row in rows:
        if isinstance(row, str):
            reason = reason or f"{path}, {location}: {row}"
            continue
        names |= dict.fromkeys(row)
        count += 1
        if count == NAMED_ROWS:
            break
    if not count:
        raise UserError(reason or f"{path}: no rows in it; give rows")
    return [*names]


def _missing_column(columns: Sequence[str], known: Sequence[str], hint: str, where: str = "") -> str:
    """Say which of `columns` is not `known`, and how to fix that. Return an empty string if all are known."""
    for column in columns:
        if column not in known:
            advice = "give the table this column" if column in FIXED_COLUMNS else hint
            near = "".join(f"is it '{name}'? Else " for name in get_close_matches(column, known, 1))
            return f"no column '{column}' among {list_columns(known)}{where}; {near}{advice}"
    return ""


def list_columns(names: Sequence[str]) -> str:
    """Return the first names of columns for a message."""
    more = " ..." if len(names) > MAX_COLUMNS_SHOWN else ""
    return ", ".join(f"'{name[:MAX_NAME_SHOWN]}'" for name in names[:MAX_COLUMNS_SHOWN]) + more


def _jsonl(
    path: AnyPath, columns: Sequence[str], hint: str, max_bytes: int, encoding: str
) -> Iterator[Record]:
    with open_lines(path) as file:
        yield from _select_columns(_objects(LineReader(file.readline, max_bytes, encoding)), columns, hint)


def _objects(lines: LineReader) -> Iterator[tuple[str, Fields | str]]:
    """Yield the location of each line that is not empty, and its object or the reason why it has none."""
    for line in lines:
        if line.reason or line.text.strip():
            yield f"line {line.number}", line.reason or parse_object(line.text)


def _select_columns(rows: Iterable[Record], columns: Sequence[str], hint: str) -> Iterator[Record]:
    for location, row in rows:
        if not isinstance(row, str):
            row = _missing_column(columns, list(row), hint) or {column: row[column] for column in columns}
        yield location, row


def parse_object(text: str) -> Fields | str:
    """Return the row of a line of a `.jsonl`, or the reason why the line is none."""
    if text.strip() in UNFINISHED_JSON:
        return (
            "the start of JSON of several lines; write an object a line (jq -c), or rename the file to .json"
        )
    try:
        row = parse_row(text)
    except ValueError as error:
        return f"not JSON: {error}; fix the row or leave it out"
    if not isinstance(row, dict):
        return describe_no_object(row)
    return str(row[REASON_KEY]) if row.keys() == {REASON_KEY} else row


def _csv(path: AnyPath, columns: Sequence[str], hint: str, max_bytes: int, encoding: str) -> Iterator[Record]:
    with open_lines(path) as file:
        lines = LineReader(file.readline, max_bytes, encoding)
        header, separator = _header(path, lines, max_bytes)
        if error := _missing_column(columns, header, hint, " (the first line)"):
            raise UserError(f"{path}: {error}")
        indices = {column: header.index(column) for column in columns}
        for line in lines:
            if not line.reason and not line.text.strip("\r\n"):
                continue
            fields = _fields(line, lines, separator, max_bytes)
            if isinstance(fields, str):
                yield f"line {line.number}", fields
            elif len(header) > 1 and fields[0].strip() == header[0] and [*map(str.strip, fields)] == header:
                yield f"line {line.number}", "the names of the columns again; remove the line"
            elif len(fields) == len(header):
                yield f"line {line.number}", {column: fields[index] for column, index in indices.items()}
            else:
                counts = f"{len(fields)} fields where the header has {len(header)}"
                yield (
                    f"line {line.number}",
                    f"{counts}; fix the row (fields with the separator in them need quotes)",
                )


def _header(path: AnyPath, lines: LineReader, max_bytes: int) -> tuple[list[str], str]:
    """Return the names of the columns and the separator.

    A `.tsv` is separated by tabs. A `.csv` is separated by commas. If the header has no comma, it is
    separated by semicolons or tabs, as spreadsheets in many countries write it, or by bars. A line `sep=;`
    above the header, as Excel reads it, names the separator.

    Raises: UserError: the file is empty, its first line can't be read, or two columns have the same name.
    """
    csv.field_size_limit(2**31 - 1)  # of all readers; Python's default is too small
    first = next(lines, None)
    if first is None:
        raise UserError(f"{path}, line 1: empty; give rows")
    separators = "\t" if path.suffix.lower() == ".tsv" else ",;\t|"
    if named := NAMED_SEPARATOR.fullmatch(first.text):
        separators = named[1]
        first = next(lines, first)
    separator = next((character for character in separators if character in first.text), separators[0])
    header = _fields(first, lines, separator, max_bytes)
    if isinstance(header, str):
        raise UserError(f"{path}, line 1: {header}")
    header = [name.strip() for name in header]
    if error := repeated_name_error(header):
        raise UserError(f"{path}, line 1: {error}")
    return header, separator


def _fields(line: Line, lines: LineReader, separator: str, max_bytes: int) -> list[str] | str:
    """Return the fields of the row that starts with `line`, or the reason why the row can't be used.

    If quotes contain line ends, the row continues in `lines`. If quotes don't close, only `line` is lost,
    because otherwise a missing quote would consume all later rows. If tabs or bars separate the fields,
    quotes that don't close are ordinary characters, as in text without quoting.
    """
    plain = line.text.rstrip("\r\n").split(separator)
    if line.reason or '"' not in line.text:
        return line.reason or plain
    consumed: list[Line] = []
    try:
        fields = next(
            csv.reader(_continued_row(line, lines, consumed, max_bytes), delimiter=separator, strict=True)
        )
        if separator not in UNQUOTED or not any(separator in field and "\n" in field for field in fields):
            return fields
        reason = ""
    except csv.Error as error:
        reason = next((each.reason for each in consumed if each.reason), "") or (
            f"quotes that don't close ({error}); fix the row (a quote within quotes is written twice)"
        )
    lines.unread(consumed)
    return plain if separator in UNQUOTED else reason


def _continued_row(line: Line, lines: LineReader, consumed: list[Line], max_bytes: int) -> Iterator[str]:
    """Yield the text of `line`, then of the lines after it, together at most `max_bytes`.

    Lines that are read are added to `consumed`.
    """
    yield line.text
    size = len(line.text)
    for next_line in lines:
        consumed.append(next_line)
        size += len(next_line.text)
        if next_line.reason or size > max_bytes:
            return
        yield next_line.text


def _parquet(path: Path, columns: Sequence[str], hint: str, max_bytes: int) -> Iterator[Record]:
    if error := _missing_column(columns, parquet_columns(path), hint):
        raise UserError(f"{path}: {error}")
    yield from parquet_rows(path, columns, max_bytes)
