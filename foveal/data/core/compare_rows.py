"""Rows with equal keys: of two splits, or with different labels.

Keys are compared by 64-bit hashes, a part of all hashes at a time, so any number of rows needs little memory.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.data.core.hash_split import text_hash
from foveal.data.core.row_table import NO_LABEL, RowTable
from foveal.data.core.rows import Row

COMPARED_ROWS = 1 << 20
"""Rows that are compared with one another at a time, about."""


def count_overlap(train: RowTable, test: RowTable) -> int:
    """Return how many rows of `test` have a key that also occurs in `train`."""
    tables = train.keys, test.keys
    parts = _part_count(len(train) + len(test))
    count = 0
    for part in range(parts):
        train_keys, test_keys = (keys[_in_part(keys, part, parts)] for keys in tables)
        count += int(np.isin(test_keys, train_keys).sum())
    return count


class Contradictions(NamedTuple):
    """Rows that have the key of an earlier row, but another label: their number, and the first pair."""

    rows: int
    first: tuple[Row, Row] | None


def find_contradictions(tables: Sequence[RowTable]) -> Contradictions:
    """Return the rows that have the key of an earlier row, but another label, which is a text."""
    labels: dict[Hashable, int] = {}
    for table in tables:
        for label in table.labels:
            labels.setdefault(label, len(labels))
    if not any(isinstance(label, str) for label in labels):
        return Contradictions(0, None)
    is_text = np.array([isinstance(label, str) for label in labels] + [False])  # the last is for NO_LABEL
    keys, table_ids = [table.keys for table in tables], [table.label_ids for table in tables]
    known = [np.array([labels[label] for label in table.labels] + [NO_LABEL]) for table in tables]
    starts = np.cumsum([0, *map(len, tables)])
    parts = _part_count(int(starts[-1]))
    count, first = 0, (int(starts[-1]), 0)
    for part in range(parts):
        chosen = [_in_part(each, part, parts) for each in keys]
        rows = np.concatenate([start + each for start, each in zip(starts, chosen, strict=False)])
        hashes = np.concatenate([each[indices] for each, indices in zip(keys, chosen, strict=True)])
        ids = np.concatenate(
            [own[each[indices]] for own, each, indices in zip(known, table_ids, chosen, strict=True)]
        )
        _, first_places, groups = np.unique(hashes, return_index=True, return_inverse=True)
        earlier = first_places[groups]
        differ = np.flatnonzero((ids != ids[earlier]) & is_text[ids] & (hashes != text_hash("")))
        count += len(differ)
        if len(differ):
            first = min(first, (int(rows[differ[0]]), int(rows[earlier[differ[0]]])))

    def row_at(index: int) -> Row:
        table = int(np.searchsorted(starts, index, "right")) - 1
        return tables[table][index - int(starts[table])]

    return Contradictions(count, (row_at(first[1]), row_at(first[0])) if count else None)


def _part_count(rows: int) -> int:
    return 1 + rows // COMPARED_ROWS


def _in_part(keys: NDArray[Any], part: int, parts: int) -> NDArray[np.int64]:
    """Return the rows whose hashes are in one of several parts of all hashes, in order."""
    rows = [np.zeros(0, np.int64)]
    for start in range(0, len(keys), COMPARED_ROWS):
        rows.append(start + np.flatnonzero(keys[start : start + COMPARED_ROWS] % parts == part))
    return np.concatenate(rows)
