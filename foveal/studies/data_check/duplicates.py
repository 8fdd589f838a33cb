"""Rows with equal sources: within a split, or in a held-out split and in the training split."""

from collections.abc import Iterator

import numpy as np

from foveal.data.core.hash_split import text_hash
from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import MAX_ROWS, Finding


def check_duplicates(data: CheckedData) -> Iterator[Finding]:
    """Yield rows that repeat an earlier one. Equal keys are equal contents."""
    _, first, groups = np.unique(data.keys, return_index=True, return_inverse=True)
    earlier = first[groups]
    repeats = (earlier != np.arange(data.count)) & (data.keys != text_hash(""))
    for number, split in enumerate(data.sizes):
        in_split = data.splits == number
        if number:
            leaked = np.flatnonzero(repeats & in_split & (data.splits[earlier] == 0))
            if len(leaked):
                yield Finding(
                    "duplicates",
                    "problem",
                    f"{len(leaked):,} of {data.sizes[split]:,} rows of {split} are also in train, so scores "
                    "are too high",
                    "leave these rows out of one of both",
                    len(leaked),
                    _pairs(data, leaked, earlier),
                )
        within = np.flatnonzero(repeats & in_split & (data.splits[earlier] == number))
        if len(within):
            part = len(within) / data.sizes[split]
            yield Finding(
                "duplicates",
                "note" if part < 0.1 else "problem",
                f"{len(within):,} of {data.sizes[split]:,} rows of {split} ({part:.1%}) repeat another",
                "leave them out, if they are not meant to count more",
                len(within),
                _pairs(data, within, earlier),
            )


def _pairs(
    data: CheckedData,
    rows: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    earlier: "np.ndarray[tuple[int], np.dtype[np.int64]]",
) -> tuple[str, ...]:
    rows = rows[:MAX_ROWS]
    both = zip(data.locations(rows, MAX_ROWS), data.locations(earlier[rows], MAX_ROWS), strict=True)
    return tuple(f"{one} = {other}" for one, other in both)
