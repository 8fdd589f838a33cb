"""The text column of a table: `.jsonl`, `.csv`, `.tsv` (standard library) and `.parquet` (pyarrow).

Every error names the line, or the row of a Parquet file. Rows are read one after the other, so a table
of any size needs the memory of a row (Parquet: of a batch of rows).
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from foveal.config import nearest
from foveal.core.errors import UserError
from foveal.data.text import open_file

SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet")
Row = tuple[str, object]
"""Where it stands ("line 7") and the value of its text column."""


def read_table(path: Path, column: str) -> Iterator[tuple[str, str]]:
    """Each row's place and text, in order."""
    read = {".jsonl": _jsonl, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}[path.suffix.lower()]
    for place, value in read(path, column):
        if not isinstance(value, str):
            kind = "null" if value is None else type(value).__name__
            raise UserError(f"{path}, {place}: '{column}' is {kind}, not text; mend the row or leave it out")
        if "\0" in value:
            raise UserError(f"{path}, {place}: '{column}' holds a NUL, so it is not text; mend the row")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            half = value[error.start]
            raise UserError(
                f"{path}, {place}: '{column}' holds half a surrogate pair ({half!r}); mend the row"
            ) from None
        yield place, value


def _lines(path: Path) -> Iterator[str]:
    """Lines with their ends (only `\\n` ends a line), so that every error can name its own."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path}, line {number}: not UTF-8 at byte {error.start} of the line; "
                    "convert the file with iconv"
                ) from None


def _no_column(place: str, column: str, known: list[str]) -> UserError:
    return UserError(f"{place}: no column '{column}'{nearest(column, known)} (set data.column=NAME)")


def _jsonl(path: Path, column: str) -> Iterator[Row]:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, {place}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise UserError(f'{path}, {place}: a JSON object is needed, such as {{"{column}": "..."}}')
        if column not in row:
            raise _no_column(f"{path}, {place}", column, list(row))
        yield place, row[column]


def _csv(path: Path, column: str) -> Iterator[Row]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(_lines(path), delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
    try:
        header = next(reader, None)
        if header is None:
            return
        if column not in header:
            raise _no_column(f"{path}", column, header)
        wanted = header.index(column)
        first = reader.line_num + 1
        for row in reader:
            if row and len(row) != len(header):
                raise UserError(
                    f"{path}, line {first}: {len(row)} fields where the header has {len(header)}; "
                    "mend the row (fields with the separator in them need quotes)"
                )
            if row:
                yield f"line {first}", row[wanted]
            first = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}; mend the quotes of the row") from None


def _parquet(path: Path, column: str) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    open_file(path).close()
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            names = table.schema_arrow.names
            if column not in names:
                raise _no_column(f"{path}", column, names)
            for batch in table.iter_batches(batch_size=1024, columns=[column]):
                for value in batch.column(0):
                    number += 1
                    yield f"row {number}", value.as_py()
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}, after row {number}: not readable as Parquet: {reason}") from None
