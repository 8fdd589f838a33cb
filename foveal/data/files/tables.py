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
from foveal.data.core.fields import Fields, Found, no_text
from foveal.data.files.lines import LONGEST, Line, Lines
from foveal.data.files.utf8 import File, open_file

SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet")
UNLIMITED = 1 << 60
NAMED = "set data.column=NAME, data.label=NAME, data.source=NAME or data.target=NAME"
TEXT = (
    "set data.column=NAME, and data.label=NAME beside it to learn labels; or data.source=NAME and "
    "data.target=NAME to learn pairs, data.tags=NAME to learn tags of 'tokens' (or say --task)"
)
MANY, LONG = 20, 40
"""So many columns are named, and so much of each name."""


def read_table(path: Path, column: str) -> Iterator[tuple[str, str]]:
    """Each row's place ("line 7") and text, in order. Errors: UserError names the first row without text."""
    for place, found in read_records(path, [column], TEXT, UNLIMITED):
        why = found if isinstance(found, str) else no_text(column, found[column])
        if isinstance(found, str) or why:
            raise UserError(f"{path}, {place}: {why}")
        yield place, found[column]


def read_records(
    path: File, columns: Sequence[str], mend: str = NAMED, longest: int = LONGEST
) -> Iterator[Found]:
    """Each row's `columns`, whatever is in them. `mend` says how a user names the columns.

    Errors: UserError for a file that is no such table, or a header without one of the columns.
    """
    read = {".jsonl": _jsonl, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}[path.suffix.lower()]
    return read(path, columns, mend, longest)


def columns_of(path: File) -> list[str]:
    """The names of a table's columns; of a `.jsonl` those of its first row. Errors: as above."""
    if path.suffix.lower() == ".parquet":
        with _open_parquet(path) as table:
            return table.schema_arrow.names
    with open_file(path) as file:
        lines = Lines(file.readline)
        if path.suffix.lower() != ".jsonl":
            return _header(path, lines, LONGEST)[0]
        rows = (_object(line.text) for line in lines)
        return next((list(row) for row in rows if not isinstance(row, str)), [])


def _missing(columns: Sequence[str], known: Sequence[str], mend: str, where: str = "") -> str:
    """Which of `columns` is not known, the known ones, and how to mend that; empty if all are."""
    for column in columns:
        if column not in known:
            names = ", ".join(f"'{name[:LONG]}'" for name in known[:MANY])
            return f"no column '{column}' among {names}{' ...' if len(known) > MANY else ''}{where}; {mend}"
    return ""


def _jsonl(path: File, columns: Sequence[str], mend: str, longest: int) -> Iterator[Found]:
    with open_file(path) as file:
        for number, text, why in Lines(file.readline, longest):
            if not why and not text.strip():
                continue
            row = why or _object(text)
            if not isinstance(row, str):
                row = _missing(columns, list(row), mend) or {column: row[column] for column in columns}
            yield f"line {number}", row


def _object(text: str) -> Fields | str:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}; mend the row or leave it out"
    return row if isinstance(row, dict) else 'a JSON object is needed, such as {"text": "..."}'


def _csv(path: File, columns: Sequence[str], mend: str, longest: int) -> Iterator[Found]:
    with open_file(path) as file:
        lines = Lines(file.readline, longest)
        header, separator = _header(path, lines, longest)
        if why := _missing(columns, header, mend, " (the first line)"):
            raise UserError(f"{path}: {why}")
        places = {column: header.index(column) for column in columns}
        for line in lines:
            if not line.why and not line.text.strip("\r\n"):
                continue
            fields = _fields(line, lines, separator, longest)
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


def _header(path: File, lines: Lines, longest: int) -> tuple[list[str], str]:
    """The names of the columns, and what separates them: tabs in a `.tsv`; in a `.csv` commas, or if its
    header has none semicolons or tabs, as spreadsheets write them in many countries."""
    csv.field_size_limit(2**31 - 1)  # of all readers, and too small as Python has it
    first = next(lines, None)
    if first is None:
        raise UserError(f"{path}, line 1: empty; give rows")
    separators = "\t" if path.suffix.lower() == ".tsv" else ",;\t"
    separator = next((mark for mark in separators if mark in first.text), separators[0])
    header = _fields(first, lines, separator, longest)
    if isinstance(header, str):
        raise UserError(f"{path}, line 1: {header}")
    return header, separator


def _fields(line: Line, lines: Lines, separator: str, longest: int) -> list[str] | str:
    """The fields of the row that begins with `line`, and goes on in `lines` where quotes hold line ends.

    If the quotes are broken no more than `line` is lost: else a forgotten one would take all rows after it.
    Where tabs separate, broken quotes are ordinary characters, as in text that nobody has quoted.
    """
    plain = line.text.rstrip("\r\n").split(separator)
    if line.why or '"' not in line.text:
        return line.why or plain
    taken: list[Line] = []
    try:
        fields = next(csv.reader(_row(line, lines, taken, longest), delimiter=separator, strict=True))
        if separator != "\t" or not any("\t" in field and "\n" in field for field in fields):
            return fields
        why = ""
    except csv.Error as error:
        why = f"quotes that don't close ({error}); mend the row (a quote within quotes is written twice)"
    lines.put_back(taken)
    return plain if separator == "\t" else why


def _row(line: Line, lines: Lines, taken: list[Line], longest: int) -> Iterator[str]:
    """The text of `line`, then of the lines after it, `taken` as they are asked for; at most `longest`."""
    yield line.text
    size = len(line.text)
    for more in lines:
        taken.append(more)
        size += len(more.text)
        if more.why or size > longest:
            return
        yield more.text


def _parquet(path: File, columns: Sequence[str], mend: str, longest: int) -> Iterator[Found]:
    number = 0
    with _open_parquet(path) as table:
        if why := _missing(columns, table.schema_arrow.names, mend):
            raise UserError(f"{path}: {why}")
        for batch in table.iter_batches(batch_size=128, columns=[*columns]):
            for values in zip(*(batch.column(name) for name in columns), strict=True):
                number += 1
                yield f"row {number}", _values(columns, values)


def _values(columns: Sequence[str], values: Sequence[Any]) -> Fields | str:
    try:
        return {column: value.as_py() for column, value in zip(columns, values, strict=True)}
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start} of a text; mend the row or leave it out"


@contextmanager
def _open_parquet(path: File) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    open_file(path).close()
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            yield table
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not readable as Parquet: {str(error).splitlines()[0]}") from None
