"""Measured series as examples: standardised channels, with a label for each series or for each step."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.classes import (
    LABELS_FILE,
    ClassIds,
    class_names,
    class_names_to_json,
    load_class_names,
    make_label_encoder,
)
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.core.standardize import STATISTICS_FILE, FloatArray, Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.series.series_files import read_series

LABEL_FIELDS = {
    "label": "one label for the whole series (--task series-classification)",
    "labels": "a label for each step (--task series-tagging)",
}
"""By its fields, how a series is labelled, and the task for that."""


@dataclass(frozen=True)
class SeriesProcessor:
    """The statistics of the channels, and the classes in the order of their numbers."""

    statistics: Statistics
    labels: tuple[str, ...]

    @property
    def source(self) -> Statistics:
        """What the encoder needs."""
        return self.statistics

    @property
    def channels(self) -> int:
        return len(self.statistics.mean)

    def encode(self, values: FloatArray, max_length: int) -> FloatArray | str:
        """(T, C) standardised; or why the model can't read it."""
        if values.shape[1] != self.channels:
            return f"{values.shape[1]} channels, and the model reads {self.channels}; give it those"
        return _too_long(values, max_length) or self.statistics.standardize(values)

    def files(self) -> dict[str, bytes]:
        return {
            STATISTICS_FILE: self.statistics.to_json().encode(),
            LABELS_FILE: class_names_to_json(self.labels),
        }


class SeriesFormat(ABC):
    """A `DataFormat`; what a series is labelled with is the subclass's."""

    field: ClassVar[str]
    """Where a row has what is needed."""
    expected: ClassVar[str]

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """The labelled series of a file: fields `source` (the sha256 of the values), `values` and `label`.

        Errors: UserError if they are not labelled so.
        """
        for row in _rows(part, skipped):
            values: FloatArray = row.fields["values"]
            if self.field not in row.fields:
                has = next((told for field, told in LABEL_FIELDS.items() if field in row.fields), "no labels")
                raise UserError(f"{row.location}: has {has}, and {self.expected} is needed")
            content = hashlib.sha256(values.tobytes()).hexdigest()
            yield Row(row.location, {"source": content, "values": values, "label": row.fields[self.field]})

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> SeriesProcessor:
        usable = [row for row in rows if not _too_long(row.fields["values"], config.max_length)]
        if not usable:
            why = _too_long(rows[0].fields["values"], config.max_length)
            raise UserError(f"{data}: no series can be used, the first: {rows[0].location}: {why}")
        labels = (label for row in usable for label in self.label_list(row.fields["label"]))
        alike = f"all of the {len(usable):,} series to train on have the label"
        names = class_names(data, labels, alike, known=reused.labels)
        return SeriesProcessor(
            reused.source or Statistics.from_data(row.fields["values"] for row in usable), names
        )

    def encode(
        self, rows: list[Row], processor: SeriesProcessor, config: DataConfig, skipped: list[SkippedRow]
    ) -> SplitData[Examples]:
        """Column `source` are the steps (T, C), standardised; beside it `label`, or `places` and `target` of
        each step."""
        number = make_label_encoder(processor.labels)

        def encoded(row: Row) -> tuple[FloatArray, ClassIds] | str:
            values = processor.encode(row.fields["values"], config.max_length)
            numbers = number(self.label_list(row.fields["label"]))
            if isinstance(values, str):
                return values
            return numbers if isinstance(numbers, str) else (values, numbers)

        kept, found = encode_or_skip(rows, encoded, skipped)
        columns = self.columns(RaggedArray.from_rows(one[0] for one in found), [one[1] for one in found])
        labels, contents = ([row.fields[name] for row in kept] for name in ("label", "source"))
        examples = Examples(columns)
        lengths = examples.lengths("source")
        sizes, sha256 = {"steps": sum(lengths)}, content_hash(zip(contents, labels, strict=True))
        return SplitData([row.location for row in kept], labels, examples, lengths, sizes, sha256, contents)

    def load_processor(self, folder: Path) -> SeriesProcessor:
        """What `SeriesProcessor.files` gave, below `folder`."""
        return SeriesProcessor(Statistics.load(folder), load_class_names(folder / LABELS_FILE))

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Series, labelled or not."""
        for row in _rows(part, skipped):
            yield Row(row.location, {"source": row.location, "values": row.fields["values"]})

    def encode_unlabeled(
        self, rows: list[Row], processor: SeriesProcessor, config: DataConfig, skipped: list[SkippedRow]
    ) -> tuple[list[Row], Examples]:
        kept, steps = encode_or_skip(
            rows, lambda row: processor.encode(row.fields["values"], config.max_length), skipped
        )
        return kept, Examples(self.columns(RaggedArray.from_rows(steps), []))

    @abstractmethod
    def label_list(self, label: Any) -> list[str]:
        """What a row's `label` holds."""

    @abstractmethod
    def columns(self, source: RaggedArray, numbers: list[ClassIds]) -> dict[str, Column]:
        """Of the `source`, and of the numbers of its labels where they are known."""


class SeriesClassificationFormat(SeriesFormat):
    """One label for each series."""

    field, expected = "label", "one for the whole series"

    def label_list(self, label: str) -> list[str]:
        return [label]

    def columns(self, source: RaggedArray, numbers: list[ClassIds]) -> dict[str, Column]:
        return {"source": source} | ({"label": np.concatenate(numbers)} if numbers else {})


class SeriesTaggingFormat(SeriesFormat):
    """One label for each step: step i is place i."""

    field, expected = "labels", "one for each step"

    def label_list(self, label: list[str]) -> list[str]:
        return label

    def columns(self, source: RaggedArray, numbers: list[ClassIds]) -> dict[str, Column]:
        places = RaggedArray.from_rows(np.arange(length) for length in source.lengths)
        target = {"target": RaggedArray.from_rows(numbers)} if numbers else {}
        return {"source": source, "places": places, **target}


def _rows(part: DataPart, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The usable series of a file, the others put into the list."""
    for row in read_series(part.path):
        if isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            yield row


def _too_long(values: FloatArray, max_length: int) -> str:
    """Why a series is left out; empty if it is not."""
    if len(values) <= max_length:
        return ""
    return f"{len(values):,} steps, and data.max_length={max_length}: train with more, or cut the series"
