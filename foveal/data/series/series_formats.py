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
from foveal.data.core.classes import Numbers, class_names, names_to_json, numbering, open_names
from foveal.data.core.examples import Column, Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.core.standardize import FILE as CHANNELS
from foveal.data.core.standardize import Statistics, Values
from foveal.data.series.series_files import read_series

LABELS = "labels.json"
LABELLED = {
    "label": "one label for the whole series (--task series)",
    "labels": "a label for each step (--task steps)",
}
"""By its fields, how a series is labelled, and the task for that."""


@dataclass(frozen=True)
class SeriesInputs:
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

    def encode(self, values: Values, longest: int) -> Values | str:
        """(T, C) standardised; or why the model can't read it."""
        if values.shape[1] != self.channels:
            return f"{values.shape[1]} channels, and the model reads {self.channels}; give it those"
        return _too_long(values, longest) or self.statistics.standardize(values)

    def files(self) -> dict[str, bytes]:
        return {CHANNELS: self.statistics.to_json().encode(), LABELS: names_to_json(self.labels)}


class MeasuredForm(ABC):
    """A `Form`; what a series is labelled with is the subclass's."""

    field: ClassVar[str]
    """Where a row has what is needed."""
    needed: ClassVar[str]

    def read(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """The labelled series of a file: fields `source` (the sha256 of the values), `values` and `label`.

        Errors: UserError if they are not labelled so.
        """
        for row in _rows(data, aside):
            values: Values = row.fields["values"]
            if self.field not in row.fields:
                has = next((told for field, told in LABELLED.items() if field in row.fields), "no labels")
                raise UserError(f"{row.place}: has {has}, and {self.needed} is needed")
            content = hashlib.sha256(values.tobytes()).hexdigest()
            yield Row(row.place, {"source": content, "values": values, "label": row.fields[self.field]})

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> SeriesInputs:
        usable = [row for row in rows if not _too_long(row.fields["values"], config.longest)]
        if not usable:
            why = _too_long(rows[0].fields["values"], config.longest)
            raise UserError(f"{data}: no series can be used, the first: {rows[0].place}: {why}")
        labels = (label for row in usable for label in self.listed(row.fields["label"]))
        alike = f"all of the {len(usable):,} series to train on have the label"
        names = class_names(data, labels, alike, known=taken.labels)
        return SeriesInputs(taken.source or Statistics.of(row.fields["values"] for row in usable), names)

    def encode(
        self, rows: list[Row], inputs: SeriesInputs, config: DataConfig, aside: list[Aside]
    ) -> Part[Examples]:
        """Column `source` are the steps (T, C), standardised; beside it `label`, or `places` and `target` of
        each step."""
        number = numbering(inputs.labels)

        def encoded(row: Row) -> tuple[Values, Numbers] | str:
            values = inputs.encode(row.fields["values"], config.longest)
            numbers = number(self.listed(row.fields["label"]))
            if isinstance(values, str):
                return values
            return numbers if isinstance(numbers, str) else (values, numbers)

        kept, found = keep(rows, encoded, aside)
        columns = self.columns(Ragged.from_rows(one[0] for one in found), [one[1] for one in found])
        labels, contents = ([row.fields[name] for row in kept] for name in ("label", "source"))
        examples = Examples(columns)
        lengths = examples.lengths("source")
        sizes, sha256 = {"steps": sum(lengths)}, hashed(zip(contents, labels, strict=True))
        return Part([row.place for row in kept], labels, examples, lengths, sizes, sha256, contents)

    def open_inputs(self, folder: Path) -> SeriesInputs:
        """What `SeriesInputs.files` gave, below `folder`."""
        return SeriesInputs(Statistics.load(folder), open_names(folder / LABELS))

    def read_questions(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """Series, labelled or not."""
        for row in _rows(data, aside):
            yield Row(row.place, {"source": row.place, "values": row.fields["values"]})

    def encode_questions(
        self, rows: list[Row], inputs: SeriesInputs, config: DataConfig, aside: list[Aside]
    ) -> tuple[list[Row], Examples]:
        kept, steps = keep(rows, lambda row: inputs.encode(row.fields["values"], config.longest), aside)
        return kept, Examples(self.columns(Ragged.from_rows(steps), []))

    @abstractmethod
    def listed(self, label: Any) -> list[str]:
        """What a row's `label` holds."""

    @abstractmethod
    def columns(self, source: Ragged, numbers: list[Numbers]) -> dict[str, Column]:
        """Of the `source`, and of the numbers of its labels where they are known."""


class OneLabel(MeasuredForm):
    """One label for each series."""

    field, needed = "label", "one for the whole series"

    def listed(self, label: str) -> list[str]:
        return [label]

    def columns(self, source: Ragged, numbers: list[Numbers]) -> dict[str, Column]:
        return {"source": source} | ({"label": np.concatenate(numbers)} if numbers else {})


class LabelEachStep(MeasuredForm):
    """One label for each step: step i is place i."""

    field, needed = "labels", "one for each step"

    def listed(self, label: list[str]) -> list[str]:
        return label

    def columns(self, source: Ragged, numbers: list[Numbers]) -> dict[str, Column]:
        places = Ragged.from_rows(np.arange(length) for length in source.lengths)
        target = {"target": Ragged.from_rows(numbers)} if numbers else {}
        return {"source": source, "places": places, **target}


def _rows(data: str, aside: list[Aside]) -> Iterator[Row]:
    """The usable series of a file, the others put into the list."""
    for row in read_series(Path(data)):
        if isinstance(row, Aside):
            aside.append(row)
        else:
            yield row


def _too_long(values: Values, longest: int) -> str:
    """Why a series is left out; empty if it is not."""
    if len(values) <= longest:
        return ""
    return f"{len(values):,} steps, and data.longest={longest}: train with more, or cut the series"
