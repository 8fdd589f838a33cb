"""Examples as columns of numbers: sentence pairs, labeled rows, tagged sentences, frames."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from foveal.data.core.columns import ColumnsWriter


@dataclass(frozen=True)
class RaggedArray:
    """Rows of different lengths in one array: row i is `values[offsets[i] : offsets[i + 1]]`.

    `values` is (N,) for tokens, (N, C) for vectors; `offsets` is (rows + 1,), of any type of integers.
    """

    values: NDArray[Any]
    offsets: NDArray[Any]

    @classmethod
    def from_rows(cls, rows: Iterable[NDArray[Any]]) -> "RaggedArray":
        arrays = list(rows)
        offsets = np.zeros(len(arrays) + 1, np.int64)
        np.fromiter(map(len, arrays), np.int64, len(arrays)).cumsum(out=offsets[1:])
        return cls(np.concatenate(arrays) if arrays else np.zeros(0, np.int64), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        row = range(len(self))[row]
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets).astype(np.int64)

    def padded(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return `rows` as (B, T) or (B, T, C) with zeros on the right, and their lengths (B,)."""
        starts = self.offsets[rows].astype(np.int64)
        lengths = self.offsets[rows + 1] - starts
        steps = np.arange(lengths.max(initial=0))
        present = steps < lengths[:, None]
        padded = np.zeros((*present.shape, *self.values.shape[1:]), self.values.dtype)
        padded[present] = self.values[(starts[:, None] + steps)[present]]
        return padded, lengths


def distinct(arrays: Iterable[NDArray[Any]]) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the arrays without those that are the same object as one before, and the place of each there."""
    place_by_id: dict[int, int] = {}
    unique: list[NDArray[Any]] = []
    places = []
    for array in arrays:
        place = place_by_id.setdefault(id(array), len(unique))
        if place == len(unique):
            unique.append(array)
        places.append(place)
    return unique, np.array(places, np.int64)


RowIndices = NDArray[np.int64]
ExamplesT = TypeVar("ExamplesT", bound="Examples")
Column = RaggedArray | NDArray[Any]
"""Rows of different lengths, or one number for each row."""


@dataclass(frozen=True)
class Examples:
    """Columns with the same number of rows, such as "source", "target" and "label"."""

    is_grouped: ClassVar[bool] = True
    """Whether rows in files are grouped by their lengths, for batches of rows of equal lengths."""
    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        sizes = {name: len(column) for name, column in self.columns.items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"columns need equal numbers of rows, not {sizes}")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes other than the number of rows, which parts of the examples do not add up to."""
        return {}

    def write(self, writer: "ColumnsWriter", contents: Sequence[str]) -> None:
        """Append the rows to files. `contents` are the hashes of the rows' sources, unless they are texts."""
        writer.write(self.columns)

    def in_files(self: ExamplesT, columns: Mapping[str, Any]) -> ExamplesT:
        """Return the examples of all rows that were written, from the columns in files."""
        return replace(self, columns=columns)

    def subset(self: ExamplesT, rows: Sequence[int]) -> ExamplesT:
        """Return the examples at the indices `rows`."""
        columns = {
            name: RaggedArray.from_rows(column[row] for row in rows)
            if isinstance(column, RaggedArray)
            else column[list(rows)]
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns)

    def lengths(self, name: str) -> list[int]:
        """Return the lengths of the rows of a ragged column."""
        column = self.columns[name]
        assert isinstance(column, RaggedArray)
        lengths: list[int] = column.lengths.tolist()
        return lengths
