"""The view `confusion` of a run: the classes that it confuses."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.base import InspectedRun, View, held_out_examples
from foveal.inspection.confusion.plot import plot_confusion
from foveal.inspection.registry import register_view
from foveal.metrics.labels import ConfusionMatrix, confusion_matrix
from foveal.metrics.report import format_table

MOST_LABELS = 3000
"""Labels at most: a matrix of more would take hundreds of megabytes."""
CONFUSED_PAIRS = 10
"""Pairs of classes in the table."""


@dataclass(frozen=True)
class ConfusionOptions:
    data: str | None = None
    """Other data than the run's held-out part."""


@dataclass(frozen=True)
class ConfusionResult:
    run: str
    split: str
    matrix: ConfusionMatrix

    def to_json(self) -> dict[str, Any]:
        counts = {"labels": self.matrix.labels, "counts": self.matrix.counts.tolist()}
        by_class = [vars(row) for row in self.matrix.per_class()]
        return {"run": self.run, "split": self.split} | counts | {"by_class": by_class}

    def sections(self) -> Iterator[str]:
        rows = [["class", self.split, "precision", "recall", "f1"]]
        for row in self.matrix.per_class():
            shares = (f"{100 * share:.1f} %" for share in (row.precision, row.recall, row.f1))
            rows.append([row.label, f"{row.support:,}", *shares])
        yield format_table(rows)
        pairs = self.matrix.most_confused(CONFUSED_PAIRS)
        if pairs:
            head = ["correct", "predicted", "times", "of the class"]
            rows = [
                [label, other, f"{count:,}", f"{100 * share:.1f} %"] for label, other, count, share in pairs
            ]
            yield "\n" + format_table([head, *rows])


@register_view
class ConfusionView(View[ConfusionOptions, ConfusionResult]):
    name = "confusion"
    summary = "The classes that a run confuses with each other."
    Options = ConfusionOptions
    progress = "labels predicted"

    def check(self, run: InspectedRun) -> None:
        if not run.task.has_classes:
            raise UserError(f"{run.run.path}: this run predicts no classes (task {run.task.name})")

    def compute(
        self, run: InspectedRun, options: ConfusionOptions, log: Log, progress: ProgressCallback
    ) -> ConfusionResult:
        part, split = held_out_examples(run, options.data, log)
        predictions = run.task.predicted_labels(part.examples, progress)
        references = [[label] if isinstance(label, str) else label for label in part.references]
        labels, outputs = [*chain(*references)], [*chain(*predictions)]
        if (count := len({*labels, *outputs})) > MOST_LABELS:
            raise UserError(
                f"{split}: {count:,} labels occur, and a confusion matrix has {MOST_LABELS:,} at most: "
                f"foveal predict {run.run.path} DATA writes the label of each row"
            )
        matrix = confusion_matrix(labels, outputs)
        return ConfusionResult(str(run.run.path), split, matrix)

    def plot(self, result: ConfusionResult) -> bytes:
        return plot_confusion(result.matrix, f"{result.run}, {result.split}")
