"""Texts, series and recordings that are much longer than the others, and pairs whose lengths do not match."""

from collections.abc import Iterator

import numpy as np

from foveal.studies.data_check.checked_data import CheckedData, place
from foveal.studies.data_check.finding import Finding, findings_on

TIMES_MEDIAN = 20
"""A source that many times as long as the median is called long."""
TIMES_RATIO = 6
"""A pair whose ratio of lengths is that many times the usual ratio is called a mismatch."""
MIN_LENGTH = 20
"""Shorter texts, in characters, have any ratio."""


def check_lengths(data: CheckedData) -> Iterator[Finding]:
    """Yield very long sources, pairs that do not match, and targets that are copies of their sources."""
    known = data.lengths[~np.isnan(data.lengths)]
    if len(known):
        median = float(np.median(known))
        rows = np.flatnonzero(data.lengths > (median or 1.0) * TIMES_MEDIAN)
        written, setting = (_seconds, "seconds") if data.input_field == "file" else (_whole, "length")
        locations = zip(data.lengths[rows], data.locations(rows, len(rows)), strict=True)
        yield from findings_on(
            "lengths",
            "note",
            [f"{location}: {written(length)}" for length, location in locations],
            f"{{}} more than {TIMES_MEDIAN} times as long as the median of {written(median)}",
            f"look at them: several rows may have been joined; data.max_{setting} says what a model reads",
        )
    if len(data.text_fields) == 2:
        yield from _check_pairs(data, *data.text_fields)


def _whole(length: float) -> str:
    return f"{length:,.0f}"


def _seconds(length: float) -> str:
    return f"{length:,.1f} s"


def _check_pairs(data: CheckedData, source: str, target: str) -> Iterator[Finding]:
    sizes = np.array(
        [(len(row.fields[source]), len(row.fields[target])) for _, row in data.rows()], np.float64
    ).reshape(-1, 2)
    long = sizes.min(1) >= MIN_LENGTH
    usual = np.log(np.median(sizes[long, 1] / sizes[long, 0])) if long.any() else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.abs(np.log(sizes[:, 1] / sizes[:, 0]) - usual)
    rows = np.flatnonzero((sizes.max(1) >= MIN_LENGTH) & (away > np.log(TIMES_RATIO)))
    yield from findings_on(
        "pairs",
        "problem",
        data.locations(rows, len(rows)),
        f"{{}} of which one side is {TIMES_RATIO} times as long as usual for the other",
        "look at them: lines of the two sides may be out of step",
    )
    copies = [
        place(split, row)
        for split, row in data.rows()
        if row.fields[source] == row.fields[target] and len(row.fields[source]) >= MIN_LENGTH
    ]
    yield from findings_on(
        "pairs",
        "note" if len(copies) < 0.02 * data.count else "problem",
        copies,
        "{} whose target is its source",
        "leave out what was not translated, if copying is not the task",
    )
