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
from foveal.data.core.hash_split import text_hash
from foveal.data.core.rows import Row

BUFFERED_ROWS = 4096
"""Rows that are in memory before they are written."""
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
        return [Row(*values) for values in read_json(self._columns["row"], start, stop)]

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
    """Writes rows into files of a folder, whose names begin with `prefix`."""

    def __init__(self, folder: Path, prefix: str):
        self._folder, self._prefix = folder, prefix
        self._columns = ColumnsWriter(folder, prefix)
        self._rows: list[Row] = []
        self._labels: dict[Hashable, int] = {}
        self._count = 0

    def append(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) == BUFFERED_ROWS:
            self._flush()

    def table(self) -> RowTable:
        if self._rows:
            self._flush()
        types: FileTypes = self._columns.close()
        facts = {"prefix": self._prefix, "types": types, "count": self._count, "labels": [*self._labels]}
        return StoredRows(self._folder, facts)

    def _flush(self) -> None:
        rows = self._rows
        values = [(row.location, row.fields, row.key) for row in rows]
        ids = _label_ids(rows, self._labels)
        self._columns.write({"row": json_column(values), "key": _key_hashes(rows), "label": ids})
        self._count += len(rows)
        rows.clear()


def _key_hashes(rows: Sequence[Row]) -> NDArray[np.uint64]:
    return np.array([text_hash(row.key) for row in rows], np.uint64)


def _label_ids(rows: Sequence[Row], ids: dict[Hashable, int]) -> NDArray[np.int64]:
    """Return the id of each row's label. New labels are added to `ids`."""
    labels = (row.fields.get("label") for row in rows)
    numbers = [NO_LABEL if label is None else ids.setdefault(label, len(ids)) for label in labels]
    return np.array(numbers, np.int64)
