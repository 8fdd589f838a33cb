"""Columns of a table that are empty, or have one value in all rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from foveal.data.core.fields import Fields
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import column_names, read_records
from foveal.inspection.style import cut_text
from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import Finding

MAX_VALUE = 40
"""Characters of a value that are shown."""


@dataclass
class _Column:
    """What the rows have in a column."""

    filled: int = 0
    first: Any = None
    varies: bool = False

    def add(self, value: Any) -> None:
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            return
        self.varies |= self.filled > 0 and value != self.first
        self.first = self.first if self.filled else value
        self.filled += 1

    def join(self, other: "_Column") -> None:
        """Add the values of another part of the rows."""
        self.varies |= other.varies or (self.filled > 0 < other.filled and self.first != other.first)
        self.first = self.first if self.filled else other.first
        self.filled += other.filled


def check_columns(data: CheckedData) -> Iterator[Finding]:
    """Yield the empty and the constant columns of each table."""
    for part in dict.fromkeys(data.files.values()):
        if part.is_table:
            yield from _findings(part, *_read(part))


def _read(part: DataPart) -> tuple[int, dict[str, _Column]]:
    """Return the number of rows, and the columns."""
    rows, columns = 0, dict[str, _Column]()
    for file in part.files:
        names = column_names(file, part.encoding)
        own = {name: _Column() for name in names}
        lacking = 0
        for _, record in read_records(file, names, encoding=part.encoding):
            rows += 1
            lacking += isinstance(record, str)
            _add(own, record)
        if lacking:  # objects without some key: each column is read alone
            own = {name: _Column() for name in names}
            for name in names:
                for _, record in read_records(file, [name], encoding=part.encoding):
                    _add(own, record)
        for name, column in own.items():
            columns.setdefault(name, _Column()).join(column)
    return rows, columns


def _add(columns: dict[str, _Column], record: Fields | str) -> None:
    """Add the values of a row; nothing if it is the reason why the row can't be read."""
    for name, value in record.items() if isinstance(record, dict) else ():
        # Images and lists are too large to be compared: each counts as another.
        plain = value is None or isinstance(value, str | int | float | bool)
        columns[name].add(value if plain else object())


def _findings(part: DataPart, rows: int, columns: dict[str, _Column]) -> Iterator[Finding]:
    empty = [name for name, each in columns.items() if not each.filled]
    constant = [name for name, each in columns.items() if each.filled > 1 and not each.varies]
    half = [name for name, each in columns.items() if 0 < each.filled < rows / 2]
    nowhere = f"columns that are empty in all {rows:,} rows of {part}"
    yield from _finding(empty, nowhere, "leave them out, or fill them")
    values = [f"{name}: {cut_text(repr(columns[name].first), MAX_VALUE)}" for name in constant]
    all_rows = f"columns with one value in all rows of {part} that have any"
    yield from _finding(values, all_rows, "a column that never varies says nothing")
    counts = [f"{name}: {columns[name].filled:,} of {rows:,}" for name in half]
    mostly = f"columns that are empty in more than half of the rows of {part}"
    yield from _finding(counts, mostly, "rows without a value that is needed are skipped")


def _finding(columns: Sequence[str], message: str, advice: str) -> Iterator[Finding]:
    if columns:
        yield Finding("columns", "note", message, advice, len(columns), tuple(columns))
