"""Rows that are equal: within a split, or held-out rows with a source that another split has."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.studies.data_check.checked_data import CheckedData, first_equal
from foveal.studies.data_check.finding import MAX_ROWS, Finding

MANY = 0.1
"""The part of a split that repeats others from which on this is a problem."""


def check_duplicates(data: CheckedData) -> Iterator[Finding]:
    """Yield held-out rows whose source is in a split before theirs, and rows that repeat all of another row
    of their split.

    Several targets of a source, such as captions of an image, are no repetition.
    """
    of_source, of_row = data.first_of_source, first_equal(data.contents)
    for number, split in enumerate(data.sizes):
        in_split = data.splits == number
        for other, earlier in enumerate([*data.sizes][:number]):
            leaked = np.flatnonzero(data.has_source & in_split & (data.splits[of_source] == other))
            if len(leaked):
                yield Finding(
                    "duplicates",
                    "problem",
                    f"{len(leaked):,} of {data.sizes[split]:,} rows of {split} have a source that is also in "
                    f"{earlier}, so scores are too high",
                    "leave these rows out of one of both",
                    len(leaked),
                    _pairs(data, leaked, of_source),
                )
        before = of_row != np.arange(data.count)
        within = np.flatnonzero(data.has_source & in_split & before & (data.splits[of_row] == number))
        if len(within):
            part = len(within) / data.sizes[split]
            yield Finding(
                "duplicates",
                "note" if part < MANY else "problem",
                f"{len(within):,} of {data.sizes[split]:,} rows of {split} ({part:.1%}) repeat another",
                "leave them out, if they are not meant to count more",
                len(within),
                _pairs(data, within, of_row),
            )


def _pairs(data: CheckedData, rows: Any, others: NDArray[Any]) -> tuple[str, ...]:
    rows = rows[:MAX_ROWS]
    both = zip(data.locations(rows, MAX_ROWS), data.locations(others[rows], MAX_ROWS), strict=True)
    return tuple(f"{one} = {other}" for one, other in both)
