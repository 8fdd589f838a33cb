"""Columns of a table that are empty, or have one value in all rows."""

from collections.abc import Iterator
from typing import Any

from foveal.data.files.tables import read_records
from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import Finding


def check_columns(data: CheckedData) -> Iterator[Finding]:
    """Yield the empty and the constant columns of each table."""
    for part in dict.fromkeys(data.files.values()):
        if not part.is_table:
            continue
        rows, filled, first, varied = 0, dict.fromkeys(part.columns, 0), dict[str, Any](), set[str]()
        for file in part.files:
            for _, fields in read_records(file, part.columns, encoding=part.encoding):
                if isinstance(fields, str):
                    continue
                rows += 1
                for name, value in fields.items():
                    if value is None or value != value or not str(value).strip():
                        continue
                    filled[name] = filled.get(name, 0) + 1
                    if first.setdefault(name, value) != value:
                        varied.add(name)
        empty = [name for name, count in filled.items() if not count]
        constant = [name for name, count in filled.items() if count and name not in varied and rows > 1]
        if empty:
            yield Finding(
                "columns",
                "note",
                f"{part}: empty in all {rows:,} rows",
                "leave them out, or fill them",
                len(empty),
                tuple(empty),
            )
        if constant:
            values = tuple(f"{name}: {first[name]!r}" for name in constant)
            yield Finding(
                "columns",
                "note",
                f"{part}: one value in all {rows:,} rows",
                "a column that never varies says nothing",
                len(constant),
                values,
            )
        half = [f"{name}: {count:,} of {rows:,}" for name, count in filled.items() if 0 < count < rows / 2]
        if half:
            yield Finding(
                "columns",
                "note",
                f"{part}: empty in more than half of the rows",
                "rows without a value that is needed are skipped",
                len(half),
                tuple(half),
            )
