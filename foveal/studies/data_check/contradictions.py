"""Rows with equal sources and different labels."""

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np

from foveal.core.terminal_text import counted
from foveal.data.core.hash_split import text_hash
from foveal.studies.data_check.checked_data import CheckedData, first_equal, place
from foveal.studies.data_check.finding import MAX_ROWS, Finding


def check_contradictions(data: CheckedData) -> Iterator[Finding]:
    """Yield the rows whose labels are not those of the first row of which a model reads the same."""
    if not data.labels:
        return
    source = data.data_format.source
    earlier = first_equal(np.array([text_hash(source.input_key(row)) for _, row in data.rows()], np.uint64))
    labels = np.array([text_hash(repr(data.row_labels(row))) for _, row in data.rows()], np.uint64)
    rows = np.flatnonzero(labels != labels[earlier])
    if not len(rows):
        return
    yield Finding(
        "labels that disagree",
        "problem",
        f"{counted(len(rows), 'row')} with the source of another row, and with another label",
        "decide which label is right, or leave them out",
        len(rows),
        tuple(_difference(data, int(row), int(earlier[row])) for row in rows[:MAX_ROWS]),
    )


def _difference(data: CheckedData, *numbers: int) -> str:
    """Return the first labels in which two rows differ."""
    rows = [data.row(number) for number in numbers]
    labels = zip_longest(*(data.row_labels(row) for _, row in rows), fillvalue="")
    position, names = next((i, pair) for i, pair in enumerate(labels, 1) if pair[0] != pair[1])
    at = "" if data.label_unit == "row" else f" at {data.label_unit} {position}"
    return ", ".join(f"{place(*row)} is {name!r}{at}" for row, name in zip(rows, names, strict=True))
