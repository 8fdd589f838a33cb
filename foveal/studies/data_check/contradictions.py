"""Rows with equal sources and different labels."""

from collections.abc import Iterator

import numpy as np

from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import MAX_ROWS, Finding


def check_contradictions(data: CheckedData) -> Iterator[Finding]:
    """Yield the rows whose label is not that of the first row with the same source."""
    earlier, ids = data.first_of_source, data.label_ids
    known = (ids >= 0) & (ids[earlier] >= 0) & data.has_source
    rows = np.flatnonzero(known & (ids != ids[earlier]))
    if not len(rows):
        return
    places = []
    for index in rows[:MAX_ROWS]:
        both = data.locations(np.array([index, earlier[index]]), 2)
        names = data.labels[ids[index]], data.labels[ids[earlier[index]]]
        places.append(f"{both[0]} is {names[0]!r}, {both[1]} is {names[1]!r}")
    yield Finding(
        "labels that disagree",
        "problem",
        f"{len(rows):,} rows have the source of another row, and another label",
        "decide which label is right, or leave them out",
        len(rows),
        tuple(places),
    )
