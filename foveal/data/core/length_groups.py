"""Examples of equal lengths as groups. Batches of similar lengths are computed from the groups, not from the
rows, since there are far fewer groups than rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.data.core.examples import Column, Examples, RaggedArray, RowIndices

CHUNK_ROWS = 1 << 18
"""Rows whose lengths are in memory at a time."""


@dataclass(frozen=True)
class LengthGroups:
    """G groups of rows: group g are `rows[starts[g] : starts[g + 1]]`, in order, all of `lengths[g]`.

    `lengths` is (G, K), with a length for each ragged column. `starts` is (G + 1,), `rows` (N,).
    """

    lengths: RowIndices
    starts: RowIndices
    rows: NDArray[Any]

    @classmethod
    def of(cls, examples: Examples) -> "LengthGroups":
        """Return the groups that are stored with the examples, or compute them."""
        if isinstance(examples, GroupedExamples):
            return examples.groups
        return group_by_length(examples.columns, np.empty(len(examples), np.int64))

    @property
    def counts(self) -> RowIndices:
        """The number of rows of each group, (G,)."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class GroupedExamples(Examples):
    """Examples whose groups are known."""

    groups: LengthGroups

    def subset(self, rows: Sequence[int]) -> "GroupedExamples":
        subset = super().subset(rows)
        return replace(subset, groups=group_by_length(subset.columns, np.empty(len(subset), np.int64)))


def group_by_length(columns: Mapping[str, Column], rows: NDArray[Any]) -> LengthGroups:
    """Return the groups of the rows of columns. `rows` (N,), which may be a file, is filled with theirs.

    Besides `rows`, the lengths of `CHUNK_ROWS` rows are in memory at a time.
    """
    ragged = [column for column in columns.values() if isinstance(column, RaggedArray)]
    bounds = [
        1 + max((int(part.max(initial=0)) for part in _lengths(column)), default=0) for column in ragged
    ]
    factors = np.array([prod(bounds[i + 1 :]) for i in range(len(bounds))], np.int64)

    def codes() -> Iterator[RowIndices]:
        for parts in zip(*map(_lengths, ragged), strict=True):
            yield np.stack(parts, 1) @ factors

    known, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for part in codes():
        new, new_counts = np.unique(part, return_counts=True)
        merged, place = np.unique(np.concatenate([known, new]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, new_counts]), len(merged)).astype(np.int64)
        known = merged
    starts = np.append(0, counts.cumsum())
    free = starts[:-1].copy()
    first = 0
    for part in codes():
        group = np.searchsorted(known, part)
        order = np.argsort(group, kind="stable")
        ranked = group[order]
        new, begin, new_counts = np.unique(ranked, return_index=True, return_counts=True)
        within = np.arange(len(part)) - np.repeat(begin, new_counts)
        rows[free[ranked] + within] = first + order
        free[new] += new_counts
        first += len(part)
    lengths = np.stack([known // factor % bound for factor, bound in zip(factors, bounds, strict=True)], 1)
    return LengthGroups(lengths, starts, rows)


def _lengths(column: RaggedArray) -> Iterator[RowIndices]:
    """Yield the lengths of the rows of a column, `CHUNK_ROWS` at a time."""
    for first in range(0, len(column), CHUNK_ROWS):
        yield np.diff(column.offsets[first : first + CHUNK_ROWS + 1]).astype(np.int64)
