"""Targets that are classes: one label for a source, or a label for each place of the source."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.classes import (
    LABELS_FILE,
    ClassIds,
    check_are_classes,
    check_are_no_numbers,
    class_names,
    class_names_to_json,
    load_class_names,
    make_label_encoder,
    missing_label_error,
)
from foveal.data.core.examples import Column, RaggedArray
from foveal.data.core.fields import Fields, as_words
from foveal.data.core.rows import Row
from foveal.data.pairs.target import FittingData, Target, TargetProcessor

LABELS_COLUMN = "labels"
"""The column of a table with a label for each place."""


@dataclass(frozen=True)
class LabelProcessor(TargetProcessor):
    """The classes, in the order of their ids."""

    labels: tuple[str, ...]

    @cached_property
    def encode(self) -> Callable[[Sequence[str]], ClassIds | str]:
        """A function from labels to their ids, or to the reason why a label has none."""
        return make_label_encoder(self.labels)

    def position_names(self, batch: ExampleBatch) -> tuple[str, ...]:
        ids = batch.columns["target" if "target" in batch.columns else "label"].flatten().tolist()
        return tuple(self.labels[i] for i in ids)

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """Return the label. For two mixed images, return both labels and the weight of the first."""
        label = self.labels[int(columns["label"])]
        if "other" not in columns:
            return label
        return f"{label} {100 * columns['share']:.0f} %, {self.labels[int(columns['other'])]}"


class LabelTarget(Target[LabelProcessor]):
    """One label for each source."""

    settings: tuple[str, ...] = ("data.label",)
    field = "label"
    is_class = True
    is_stored = True
    model_sizes = ("classes",)

    def column(self, config: DataConfig) -> str:
        return config.label

    def fit(self, fitting: FittingData) -> LabelProcessor:
        data, rows, source = fitting.data, fitting.usable, fitting.source
        labels = Counter(label for row in rows for label in self.label_list(row))
        subject = source.same_label.format(count=len(rows))
        self.check_labels(data, labels)
        names = class_names(data, labels, subject, source.label_hint, fitting.reused.labels)
        source.check_labels(data, names, rows, fitting.config)
        return LabelProcessor(names)

    def check_labels(self, data: str, labels: Counter[str]) -> None:
        """Check that the labels of the training rows, which are counted, are classes.

        Raises: UserError: they are not.
        """
        check_are_classes(data, labels)

    def label_list(self, row: Row) -> list[str]:
        return [row.fields[self.field]]

    def missing_error(self, row: Row) -> str:
        return missing_label_error(row.fields[self.field])

    def sized_processor(self, sizes: Mapping[str, int]) -> LabelProcessor:
        return LabelProcessor(tuple(map(str, range(sizes["classes"]))))

    def files(self, processor: LabelProcessor, source_processor: Any) -> dict[str, bytes]:
        return {LABELS_FILE: class_names_to_json(processor.labels)}

    def load(self, folder: Path, source_processor: Any) -> LabelProcessor:
        return LabelProcessor(load_class_names(folder / LABELS_FILE))

    def encode(self, row: Row, processor: LabelProcessor, config: DataConfig) -> ClassIds | str:
        return processor.encode(self.label_list(row))

    def columns(self, values: list[Any]) -> dict[str, Column]:
        return {"label": np.array(values, np.int64).reshape(-1)}


class LabelEachTarget(LabelTarget):
    """A label for each place of a source, such as a step or a frame."""

    settings: tuple[str, ...] = ()
    field = "labels"
    is_class = False
    is_stored = True
    each_place = True

    def column(self, config: DataConfig) -> str:
        return LABELS_COLUMN

    def parse(self, column: str, value: Any) -> Fields | str:
        words = as_words({column: value})
        return words if isinstance(words, str) else {self.field: [*map(str.strip, words["tokens"])]}

    def check_labels(self, data: str, labels: Counter[str]) -> None:
        check_are_no_numbers(data, labels)  # tags may join features, such as Case=Nom|Number=Sing

    def label_list(self, row: Row) -> list[str]:
        labels: list[str] = row.fields[self.field]
        return labels

    def missing_error(self, row: Row) -> str:
        return ""

    def columns(self, values: list[Any]) -> dict[str, Column]:
        return {"target": RaggedArray.from_rows(values)}
