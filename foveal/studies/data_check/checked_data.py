"""The rows of data that are checked, split as a training splits them."""

from collections import Counter
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
from foveal.data.pairs.pair import PairFormat
from foveal.studies.data_check.decoded_recording import DecodedRecording, decode_recording


@dataclass(frozen=True)
class CheckedData:
    """Rows in the order of the splits, numbered from 0."""

    name: str
    files: Mapping[SplitName, DataPart]
    tables: Mapping[SplitName, RowTable]
    skipped: list[SkippedRow]
    config: DataConfig
    data_format: PairFormat
    """The source and the target of the rows."""

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

    @property
    def input_field(self) -> str:
        """The field of a row that a model reads."""
        return self.data_format.source.input_field

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The fields of a row that are texts: of its source, and of its target."""
        target = self.data_format.target
        return ("source",) * (self.input_field == "source") + (target.field,) * target.is_text

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
    def lengths(self) -> NDArray[np.float64]:
        """The length of each row's source, in characters, words, steps or seconds (not a number if the
        recording can't be used), (N,); empty if sources have none."""
        if self.input_field == "file":
            return np.array([np.nan if isinstance(one, str) else one.seconds for one in self.recordings])
        if self.input_field not in ("source", "values"):
            return np.zeros(0)
        return np.array([len(row.fields[self.input_field]) for _, row in self.rows()], np.float64)

    @cached_property
    def recordings(self) -> list[DecodedRecording | str]:
        """The facts of each row's recording, or the reason why it can't be used."""
        return [decode_recording(row.fields["file"], self.config) for _, row in self.rows()]

    @cached_property
    def splits(self) -> NDArray[np.int64]:
        """The number of each row's split among `sizes`, (N,)."""
        return np.repeat(np.arange(len(self.sizes)), [*self.sizes.values()])

    def row_labels(self, row: Row) -> list[str]:
        """Return the labels of a row: one, one for each place, or none."""
        return self.data_format.target.label_list(row)

    @property
    def label_unit(self) -> str:
        """The word for what has a label: row, word, step or frame."""
        return self.data_format.source.place if self.data_format.target.each_place else "row"

    @cached_property
    def label_counts(self) -> dict[SplitName, Counter[str]]:
        """The count of each label, by split."""
        counts = {split: Counter[str]() for split in self.sizes}
        for split, row in self.rows():
            counts[split].update(self.row_labels(row))
        return counts

    @cached_property
    def labels(self) -> list[str]:
        """All labels, in the order in which they are first read."""
        return [*dict.fromkeys(label for counts in self.label_counts.values() for label in counts)]

    @cached_property
    def first_of_label(self) -> dict[str, str]:
        """The place of the first row with each label."""
        first: dict[str, str] = {}
        for split, row in self.rows():
            for label in self.row_labels(row):
                if label not in first:
                    first[label] = place(split, row)
        return first

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
