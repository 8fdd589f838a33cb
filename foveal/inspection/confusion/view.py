"""The view `confusion` of a run: the classes that it confuses."""

from dataclasses import dataclass
from itertools import chain

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.panels import Axis, Heatmap, NamedArray, Panel, Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun, held_out_examples
from foveal.inspection.view import View
from foveal.metrics.labels import ConfusionMatrix, confusion_matrix

MOST_LABELS = 3000
"""Labels at most: a matrix of more would take hundreds of megabytes."""
CONFUSED_PAIRS = 10
"""Pairs of classes in the table."""
MAX_CLASSES, MAX_CLASSES_WITH_COUNTS = 40, 20
"""Most classes of the map, those with most mistakes; and most classes whose counts are written."""
CAVEAT = (
    "each row is a share of its own class, so a dark cell of a rare class may be a single example; "
    "the split decides which mistakes occur at all"
)


@dataclass(frozen=True)
class ConfusionOptions:
    data: str | None = None
    """Other data than the run's held-out part."""


@register_view("confusion")
class ConfusionView(View[ConfusionOptions]):
    summary = "The classes that a run confuses with each other."
    Options = ConfusionOptions
    progress = "labels predicted"

    def fits(self, run: InspectedRun) -> str:
        return "" if run.task.has_classes else f"this run predicts no classes (task {run.task.name})"

    def compute(
        self, run: InspectedRun, options: ConfusionOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        part, split = held_out_examples(run, options.data, log)
        predictions = run.task.predicted_labels(part.examples, progress)
        references = [[label] if isinstance(label, str) else label for label in part.references]
        labels, outputs = [*chain(*references)], [*chain(*predictions)]
        if (count := len({*labels, *outputs})) > MOST_LABELS:
            raise UserError(
                f"{split}: {count:,} labels occur, and a confusion matrix has {MOST_LABELS:,} at most: "
                f"foveal predict {run.run.path} DATA writes the label of each row"
            )
        return confusion_payload(str(run.run.path), split, confusion_matrix(labels, outputs))


def confusion_payload(subject: str, split: str, matrix: ConfusionMatrix) -> Payload:
    """Return the map of the classes with most mistakes, and tables of classes and of pairs."""
    panels: list[Panel] = [_heatmap(matrix), _class_table(matrix, split), *_pair_table(matrix)]
    by_class = [vars(row) for row in matrix.per_class()]
    counts = {"labels": matrix.labels, "counts": matrix.counts.tolist(), "by_class": by_class}
    values = {"run": subject, "split": split} | counts
    title = f"{subject}: confusion, {split}"
    return Payload("confusion", subject, title, tuple(panels), CAVEAT, "exact", values=values)


def _heatmap(matrix: ConfusionMatrix) -> Heatmap:
    """Return the map: a row for each class, a column for each predicted label."""
    classes = matrix.most_mistaken(MAX_CLASSES)
    labels = tuple(matrix.labels[number] for number in classes)
    counts = matrix.counts[np.ix_(classes, classes)]
    shares = counts / np.maximum(matrix.counts[classes].sum(1, keepdims=True), 1)
    axes = Axis("correct class", labels), Axis("predicted class", labels)
    texts = tuple(tuple(f"{count:,}" if count else "" for count in row) for row in counts.tolist())
    count = len(matrix.labels)
    title = "" if len(classes) == count else f"{len(classes)} classes of {count:,}, those with most mistakes"
    array = NamedArray(shares, axes, "share of the correct class")
    return Heatmap(title, array, 0.0, 1.0, texts if len(classes) <= MAX_CLASSES_WITH_COUNTS else ())


def _class_table(matrix: ConfusionMatrix, split: str) -> Table:
    rows = []
    for row in matrix.per_class():
        shares = (f"{100 * share:.1f} %" for share in (row.precision, row.recall, row.f1))
        rows.append((row.label, f"{row.support:,}", *shares))
    return Table("", ("class", split, "precision", "recall", "f1"), tuple(rows))


def _pair_table(matrix: ConfusionMatrix) -> list[Table]:
    """Return a table of the pairs that are confused most often; none if no pair is."""
    rows = tuple(
        (label, other, f"{count:,}", f"{100 * share:.1f} %")
        for label, other, count, share in matrix.most_confused(CONFUSED_PAIRS)
    )
    return [Table("", ("correct", "predicted", "times", "of the class"), rows)] if rows else []
