"""Which rows are compared with one another, where all with all would take too long."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from foveal.core.terminal_text import counted
from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import Finding


def choose_rows(data: CheckedData, usable: NDArray[np.bool], most: int) -> NDArray[np.int64]:
    """Return the numbers of at most `most` usable rows, in order: the first of each split.

    Held-out rows come before those of train, since a leak is theirs. Half of all is left for train, because
    held-out rows alone show no leak.
    """
    train, *held_out = _by_split(data, np.flatnonzero(usable))
    rows = np.concatenate([*reversed(held_out), train[:0]])[: most - min(len(train), most // 2)]
    return np.sort(np.concatenate([rows, train[: most - len(rows)]]))


def limit_findings(
    data: CheckedData, check: str, noun: str, usable: NDArray[np.bool], chosen: NDArray[np.int64]
) -> Iterator[Finding]:
    """Yield how many usable rows of each split were chosen, if not all were."""
    all_rows = np.flatnonzero(usable)
    if len(chosen) == len(all_rows):
        return
    pairs = zip(data.sizes, _by_split(data, chosen), _by_split(data, all_rows), strict=True)
    parts = [f"{len(compared):,} of {len(rows):,} in {split}" for split, compared, rows in pairs]
    yield Finding(
        check,
        "note",
        f"only {len(chosen):,} of {counted(len(all_rows), noun)} are compared, the first of each split: "
        f"{', '.join(parts)}",
        "rows that are left out may be like others: check parts of the data, too",
        len(all_rows) - len(chosen),
    )


def _by_split(data: CheckedData, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the rows of each split, train first."""
    return [rows[data.splits[rows] == number] for number in range(len(data.sizes))]
