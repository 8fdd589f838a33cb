"""The columns of a table that look like texts and like labels, for the commands that an error proposes."""

from itertools import chain, combinations, islice
from types import UnionType
from typing import Any, NamedTuple

from foveal.core.errors import UserError
from foveal.data.core.fields import split_words
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
    values = {name: [*map(str, column)] for name, column in _first_values(table).items()}
    lengths = {name: sum(map(len, column)) / len(column) for name, column in values.items() if column}
    text = text or max(lengths, key=lambda name: lengths[name], default="")
    kinds = {name: len({*column}) for name, column in values.items() if name != text}
    labels = {
        name: count
        for name, count in kinds.items()
        if 1 < count <= MAX_LABELS and count * ROWS_PER_LABEL <= len(values[name])
    }
    return GuessedColumns(text, min(labels, key=lambda name: labels[name], default=""))


def row_in_header(table: DataPart) -> str:
    """Return the name of a column that is also a value of the column, so that the first line of a table is a
    row. Empty if there is no such name, or the whole line is there again, as in tables that were joined."""
    values = _first_values(table)
    counts = {name: [*map(str, column)].count(name) for name, column in values.items()}
    lines = min(counts.values(), default=0)
    return next((name for name, count in counts.items() if name and count > lines), "")


def guess_tagged_columns(table: DataPart) -> tuple[str, str]:
    """Return the column of words and that of their tags: lists, or words between spaces, equally many in each
    row. The tags are the column with fewer different values, which are few and mostly no words. Both are
    empty if there are no such columns.
    """
    lists: dict[str, list[list[str]]] = {}
    for name, values in _first_values(table, str | int | list).items():
        split = [split_words(str(value)) if not isinstance(value, list) else value for value in values]
        if all(isinstance(words, list) for words in split):
            lists[name] = [[*map(str, words)] for words in split]
    for first, second in combinations(lists, 2):
        counts, other_counts = ([*map(len, lists[name])] for name in (first, second))
        if counts == other_counts and sum(count > 1 for count in counts) * 2 > len(counts):
            words, tags = sorted((first, second), key=lambda name: -len({*chain(*lists[name])}))
            kinds = {*chain(*lists[tags])}
            others = kinds.difference(chain(*lists[words]))
            if len(kinds) * ROWS_PER_LABEL <= sum(counts) and 2 * len(others) > len(kinds):
                return words, tags
    return "", ""


def _first_values(table: DataPart, types: type | UnionType = str | int) -> dict[str, list[Any]]:
    """Return the values of the `types` in each column of the first rows."""
    names = table.columns
    values: dict[str, list[Any]] = {name: [] for name in names}
    try:
        for _, record in islice(read_records(table.files[0], names, encoding=table.encoding), ROWS):
            for name, value in record.items() if isinstance(record, dict) else ():
                if isinstance(value, types) and str(value).strip():
                    values[name].append(value)
    except UserError:
        return {}
    return values
