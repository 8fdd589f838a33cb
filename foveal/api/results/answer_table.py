"""Answers as a table: CSV, JSON lines or Parquet, with the rows' own columns before those of the answers."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.core.finite_json import finite_json
from foveal.data.core.fields import Fields
from foveal.store.output_file import check_output_file
from foveal.tasks.results import AnsweredRow

TOP_COLUMN, LOG_PROBABILITY_COLUMN = "top_k", "log_probability"
ANSWER_COLUMNS = ("answer", "probability", LOG_PROBABILITY_COLUMN, TOP_COLUMN, "reason")
DIGITS = 6
"""Digits of a probability."""
OWN_PREFIX = "data."
"""The prefix of a row's own column whose name is that of a column of answers."""


def answer_fields(row: AnsweredRow, has_top: bool) -> Fields:
    """Return the columns of an answer. Without `has_top`, the likeliest answers are left out."""
    if row.answer is None:
        return dict.fromkeys(ANSWER_COLUMNS) | {"reason": row.reason}
    answer = row.answer
    top = _as_dicts(answer.top) if has_top else None
    numbers = _rounded(answer.probability), _rounded(answer.log_probability), _rounded(top)
    values = answer.text, *numbers, row.reason
    return dict(zip(ANSWER_COLUMNS, values, strict=True))


class AnswerTable:
    """The columns of a table of answers, and its rows as records.

    `is_written` says whether answers are written token by token, with log-probabilities.
    """

    def __init__(self, rows: Iterable[AnsweredRow], is_written: bool, has_top: bool):
        self._rows, self._has_top = rows, has_top
        left_out = () if is_written else (LOG_PROBABILITY_COLUMN,)
        self._answer_columns = [name for name in ANSWER_COLUMNS if name not in left_out]

    def lines(self) -> Iterator[str]:
        """Yield CSV, the header first. The first row decides which own columns there are."""
        columns: list[str] | None = None
        for row in self._rows:
            record = self._record(row)
            if columns is None:
                columns = list(record)
                yield _csv_line(columns)
            yield _csv_line([_csv_cell(record.get(name)) for name in columns])

    def content(self, suffix: str) -> bytes:
        """Return all rows as the content of a file."""
        records = self.records()
        own = dict.fromkeys(name for record in records for name in record)
        columns = [*(name for name in own if name not in self._answer_columns), *self._answer_columns]
        return FORMATS[suffix](columns, records)

    def records(self) -> list[Fields]:
        """Return all rows as records."""
        return [*map(self._record, self._rows)]

    def _record(self, row: AnsweredRow) -> Fields:
        own = {
            f"{OWN_PREFIX}{name}" if name in self._answer_columns else name: value
            for name, value in row.columns.items()
        }
        answer = answer_fields(row, self._has_top)
        return own | {name: answer[name] for name in self._answer_columns}


def check_answer_file(path: Path, data: str | None, overwrite: bool) -> None:
    """Check the file of `--out` before any work.

    Raises: UserError: the format is unknown, or the file exists or can't be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"--out {path}: answers are written as {', '.join(FORMATS)}; name such a file")
    if FORMATS[path.suffix.lower()] is _parquet:
        require("pyarrow", f"--out {path}: a Parquet table")
    check_output_file(path, "--out")
    if path.exists() and data is not None and Path(data).exists() and path.samefile(data):
        raise UserError(f"--out {path}: this is DATA itself; name another file")
    if path.exists() and not overwrite:
        raise UserError(f"--out {path}: exists; name another file, or replace it with --overwrite")


def _rounded(value: Any) -> Any:
    """Return a value whose numbers, at any depth, have `DIGITS` digits: float32 has no more."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return [*map(_rounded, value)] if isinstance(value, list) else value


def _as_dicts(top: Sequence[Any]) -> list[Any]:
    """Return alternatives, or the alternatives of each place, as JSON."""
    return [each._asdict() if hasattr(each, "_asdict") else _as_dicts(each) for each in top]


def _csv(columns: Sequence[str], records: Sequence[Fields]) -> bytes:
    lines = ([_csv_cell(record.get(name)) for name in columns] for record in records)
    return "".join(map(_csv_line, [columns, *lines])).encode("utf-8", "backslashreplace")


def _csv_line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _csv_cell(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON without bytes, such as those of an image."""
    if value is None or isinstance(value, str):
        return value or ""
    return _to_json(_without_bytes(value))


def _jsonl(columns: Sequence[str], records: Sequence[Fields]) -> bytes:
    lines = ({name: _without_bytes(record.get(name)) for name in columns} for record in records)
    return "".join(f"{_to_json(line)}\n" for line in lines).encode("utf-8", "backslashreplace")


def _to_json(value: Any) -> str:
    return json.dumps(finite_json(value), ensure_ascii=False, allow_nan=False, default=str)


def _without_bytes(value: Any) -> Any:
    """Return a value with None in place of bytes at any depth."""
    if isinstance(value, bytes):
        return None
    if isinstance(value, dict):
        return {key: _without_bytes(part) for key, part in value.items()}
    return [*map(_without_bytes, value)] if isinstance(value, list | tuple) else value


def _parquet(columns: Sequence[str], records: Sequence[Fields]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    arrays = {name: _arrow_array([record.get(name) for record in records]) for name in columns}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(arrays), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _arrow_array(values: list[Any]) -> Any:
    """Return values as an array. Values of several types become JSON."""
    import pyarrow

    try:
        array = pyarrow.array(values)
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError, UnicodeEncodeError):
        array = pyarrow.array([None if value is None else _printable(value) for value in values])
    return array.cast(pyarrow.string()) if pyarrow.types.is_null(array.type) else array


def _printable(value: Any) -> str:
    text = value if isinstance(value, str) else _to_json(_without_bytes(value))
    return text.encode("utf-8", "backslashreplace").decode()


FORMATS: dict[str, Callable[[Sequence[str], Sequence[Fields]], bytes]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
"""The writer of a table for each suffix."""
