"""The columns of a table that look like texts and like labels, for the commands that an error proposes."""

from itertools import islice
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import read_records

ROWS = 500
"""First rows that are looked at."""
MAX_LABELS, ROWS_PER_LABEL = 50, 3
"""Distinct values of a column of labels at most, and rows for each of them at least, on average."""


class GuessedColumns(NamedTuple):
    """The names of columns. Empty if no column looks so."""

    text: str
    label: str


def guess_columns(table: DataPart, text: str = "") -> GuessedColumns:
    """Return the column with the longest texts, or the column `text`, and the one with the fewest values."""
    values = _first_values(table)
    lengths = {name: sum(map(len, column)) / len(column) for name, column in values.items() if column}
    text = text or max(lengths, key=lambda name: lengths[name], default="")
    kinds = {name: len({*column}) for name, column in values.items() if name != text}
    labels = {
        name: count
        for name, count in kinds.items()
        if 1 < count <= MAX_LABELS and count * ROWS_PER_LABEL <= len(values[name])
    }
    return GuessedColumns(text, min(labels, key=lambda name: labels[name], default=""))


def _first_values(table: DataPart) -> dict[str, list[str]]:
    """Return the texts and whole numbers in each column of the first rows."""
    names = table.columns
    values: dict[str, list[str]] = {name: [] for name in names}
    try:
        for _, record in islice(read_records(table.files[0], names, encoding=table.encoding), ROWS):
            for name, value in record.items() if isinstance(record, dict) else ():
                if isinstance(value, str | int) and str(value).strip():
                    values[name].append(str(value))
    except UserError:
        return {}
    return values
