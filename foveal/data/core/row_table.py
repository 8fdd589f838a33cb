"""Tables of rows: in memory, or in files from which a row is read when it is asked for."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from foveal.data.core.columns import (
    ColumnsWriter,
    FileTypes,
    LazySequence,
    json_column,
    open_columns,
    read_json,
)
from foveal.data.core.examples import distinct
from foveal.data.core.fields import Fields
from foveal.data.core.hash_split import text_hash
from foveal.data.core.rows import Row

BUFFERED_ROWS, BUFFERED_BYTES = 4096, 1 << 26
"""Rows that are in memory before they are written, and bytes of their arrays."""
PLACE = "place of"
"""The start of the name of the column with the place of each row's array. Several rows may share one."""
NO_LABEL = -1
"""The index in place of a label that a row does not have."""


class RowTable(Sequence[Row], ABC):
    """Rows, with what is compared of all of them."""

    @property
    @abstractmethod
    def keys(self) -> NDArray[Any]:
        """A hash of each row's key, (N,)."""

    @property
    @abstractmethod
    def labels(self) -> dict[Hashable, int]:
        """The different labels, with their ids from 0 on."""

    @property
    @abstractmethod
    def label_ids(self) -> NDArray[Any]:
        """The id of each row's label, or `NO_LABEL`, (N,)."""


@runtime_checkable
class RowSink(Protocol):
    """Takes rows one by one, and then returns the table of all."""

    def append(self, row: Row) -> None: ...
    def table(self) -> RowTable: ...


def fill(sink: RowSink, rows: Iterable[Row]) -> RowTable:
    """Return the table of some rows."""
    for row in rows:
        sink.append(row)
    return sink.table()


class ListedRows(RowTable):
    """Rows in memory."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def append(self, row: Row) -> None:
        self._rows.append(row)

    def table(self) -> RowTable:
        return self

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    @property
    def keys(self) -> NDArray[Any]:
        return _key_hashes(self._rows)

    @property
    def labels(self) -> dict[Hashable, int]:
        labels: dict[Hashable, int] = {}
        _label_ids(self._rows, labels)
        return labels

    @property
    def label_ids(self) -> NDArray[Any]:
        return _label_ids(self._rows, self.labels)


class StoredRows(LazySequence[Row], RowTable):
    """Rows in files, of which a few are in memory at a time."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]):
        super().__init__(facts["count"], self._read_rows)
        self.facts = facts
        self._columns = open_columns(folder, facts["prefix"], facts["types"])

    def _read_rows(self, start: int, stop: int) -> list[Row]:
        rows = [Row(*values) for values in read_json(self._columns["row"], start, stop)]
        for name in self.facts["arrays"]:
            arrays: dict[int, NDArray[Any]] = {}
            for row, place in zip(rows, self._columns[f"{PLACE} {name}"][start:stop].tolist(), strict=True):
                if place not in arrays:
                    arrays[place] = self._columns[name][place]
                row.fields[name] = arrays[place]
        return rows

    @property
    def keys(self) -> NDArray[Any]:
        return self._column("key")

    @property
    def labels(self) -> dict[Hashable, int]:
        return {label: label_id for label_id, label in enumerate(self.facts["labels"])}

    @property
    def label_ids(self) -> NDArray[Any]:
        return self._column("label")

    def _column(self, name: str) -> NDArray[Any]:
        column = self._columns.get(name, np.zeros(0, np.int64))
        assert isinstance(column, np.ndarray)
        return column


class RowFiles:
    """Writes rows into files of a folder, whose names begin with `prefix`. If a field is an array, it is one
    in all rows."""

    def __init__(self, folder: Path, prefix: str):
        self._folder, self._prefix = folder, prefix
        self._columns = ColumnsWriter(folder, prefix)
        self._rows: list[Row] = []
        self._labels: dict[Hashable, int] = {}
        self._array_counts: dict[str, int] = {}
        self._count = self._buffered_bytes = 0

    def append(self, row: Row) -> None:
        self._rows.append(row)
        self._buffered_bytes += sum(array.nbytes for array in _arrays(row).values())
        if len(self._rows) == BUFFERED_ROWS or self._buffered_bytes >= BUFFERED_BYTES:
            self._flush()

    def table(self) -> RowTable:
        if self._rows:
            self._flush()
        types: FileTypes = self._columns.close()
        facts = {"prefix": self._prefix, "types": types, "count": self._count, "labels": [*self._labels]}
        return StoredRows(self._folder, facts | {"arrays": [*self._array_counts]})

    def _flush(self) -> None:
        rows = self._rows
        for name in _arrays(rows[0]):
            self._write_arrays(name, [row.fields[name] for row in rows])
        values = [(row.location, _without_arrays(row), row.key) for row in rows]
        ids = _label_ids(rows, self._labels)
        self._columns.write({"row": json_column(values), "key": _key_hashes(rows), "label": ids})
        self._count, self._buffered_bytes = self._count + len(rows), 0
        rows.clear()

    def _write_arrays(self, name: str, arrays: list[NDArray[Any]]) -> None:
        """Write the arrays of a field. One that several rows have is written once."""
        first = self._array_counts.get(name, 0)
        unique, places = distinct(arrays)
        self._columns.write_arrays(name, unique)
        self._columns.write({f"{PLACE} {name}": first + places})
        self._array_counts[name] = first + len(unique)


def _arrays(row: Row) -> dict[str, NDArray[Any]]:
    return {name: value for name, value in row.fields.items() if isinstance(value, np.ndarray)}


def _without_arrays(row: Row) -> Fields:
    return {name: value for name, value in row.fields.items() if not isinstance(value, np.ndarray)}


def _key_hashes(rows: Sequence[Row]) -> NDArray[np.uint64]:
    return np.array([text_hash(row.key) for row in rows], np.uint64)


def _label_ids(rows: Sequence[Row], ids: dict[Hashable, int]) -> NDArray[np.int64]:
    """Return the id of each row's label. New labels are added to `ids`."""
    labels = (row.fields.get("label") for row in rows)
    numbers = [NO_LABEL if label is None else ids.setdefault(label, len(ids)) for label in labels]
    return np.array(numbers, np.int64)
