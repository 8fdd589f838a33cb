"""The rows of data that are checked, split as a training splits them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import DataConfig
from foveal.data.core.hash_split import SPLITS, SplitName, text_hash
from foveal.data.core.row_table import RowTable
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.source import Source
from foveal.data.series.series_source import SeriesSource


@dataclass(frozen=True)
class CheckedData:
    """Rows in the order of the splits, numbered from 0."""

    name: str
    files: Mapping[SplitName, DataPart]
    tables: Mapping[SplitName, RowTable]
    skipped: list[SkippedRow]
    config: DataConfig
    source: Source[Any] | None
    """The source of the rows; None for lines of running text."""
    text_fields: tuple[str, ...]
    """The fields of a row that are texts."""

    @cached_property
    def sizes(self) -> dict[SplitName, int]:
        """The number of rows in each split that has some."""
        return {split: len(self.tables[split]) for split in SPLITS if len(self.tables.get(split, ()))}

    @property
    def count(self) -> int:
        return sum(self.sizes.values())

    def rows(self) -> Iterator[tuple[SplitName, Row]]:
        """Yield all rows with their splits."""
        for split in self.sizes:
            for row in self.tables[split]:
                yield split, row

    def row(self, index: int) -> tuple[SplitName, Row]:
        """Return a row by its number."""
        for split, size in self.sizes.items():
            if index < size:
                return split, self.tables[split][index]
            index -= size
        raise IndexError(index)

    @cached_property
    def keys(self) -> NDArray[Any]:
        """A hash of each row's content, (N,)."""
        return np.concatenate([self.tables[split].keys for split in self.sizes])

    @cached_property
    def first_of_source(self) -> NDArray[Any]:
        """The number of the first row with the source of each row, (N,)."""
        return first_equal(self.keys)

    @cached_property
    def has_source(self) -> NDArray[np.bool]:
        """Return whether a row is compared at all, (N,): short lines of running text are not."""
        return self.keys != text_hash("")

    @cached_property
    def contents(self) -> NDArray[Any]:
        """A hash of all that each row has, (N,): rows with one source may have several targets."""
        rows = (
            (
                row.key,
                {name: value for name, value in row.fields.items() if not isinstance(value, np.ndarray)},
            )
            for _, row in self.rows()
        )
        return np.array([text_hash(repr(row)) for row in rows], np.uint64)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each row's source, in characters, words or steps; empty if sources have none."""
        if not ("source" in self.text_fields or isinstance(self.source, SeriesSource)):
            return np.zeros(0, np.int64)
        name = "source" if "source" in self.text_fields else "values"
        return np.fromiter((len(row.fields[name]) for _, row in self.rows()), np.int64, self.count)

    @cached_property
    def splits(self) -> NDArray[np.int64]:
        """The number of each row's split among `sizes`, (N,)."""
        return np.repeat(np.arange(len(self.sizes)), [*self.sizes.values()])

    @cached_property
    def labels(self) -> list[str]:
        """The labels that are texts, in the order of `label_ids`."""
        return [label for label in self._label_numbers if isinstance(label, str)]

    @cached_property
    def label_ids(self) -> NDArray[np.int64]:
        """The number of each row's label in `labels`, or -1, (N,)."""
        numbers: dict[Any, int] = {label: number for number, label in enumerate(self.labels)}
        ids = []
        for split in self.sizes:
            table = self.tables[split]
            known = np.array([numbers.get(label, -1) for label in table.labels] + [-1])  # the last: no label
            ids.append(known[table.label_ids])
        return np.concatenate(ids)

    @property
    def _label_numbers(self) -> dict[Any, None]:
        return {label: None for split in self.sizes for label in self.tables[split].labels}

    def locations(self, indices: NDArray[Any], most: int) -> list[str]:
        """Return where the first rows of some are."""
        return [place(*self.row(int(index))) for index in indices[:most]]


def first_equal(hashes: NDArray[Any]) -> NDArray[Any]:
    """Return the number of the first row with the hash of each row."""
    _, first, groups = np.unique(hashes, return_index=True, return_inverse=True)
    return first[groups]


def place(split: SplitName, row: Row) -> str:
    """Return where a row is, and in which split."""
    return f"{row.location} ({split})"
