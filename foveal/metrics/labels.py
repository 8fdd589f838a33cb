"""Metrics for a single label per example: accuracy, F1 and the confusion matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from foveal.metrics.score import MetricResult, RowIndices, check_pairs, success_rate


def accuracy(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """Return the fraction of examples with the correct label.

    Example:

        >>> metrics.accuracy(["cat", "dog", "dog"], ["cat", "dog", "cat"]).value
        0.6666666666666666
    """
    check_pairs(references, outputs)
    errors = [output != reference for output, reference in zip(outputs, references, strict=True)]
    return success_rate("accuracy", errors, [1] * len(errors))


def macro_f1(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """Return macro F1: the mean F1 over the classes, all with equal weight.

    `per_example` is 1 for a correct label, else 0. The classes of a selection are the labels that occur in
    its references or outputs.

    Example:

        >>> metrics.macro_f1(["cat", "dog", "dog"], ["cat", "dog", "cat"]).value
        0.6666666666666666
    """
    check_pairs(references, outputs)
    classes, gold, predicted = _label_ids(references, outputs)

    def mean_f1(rows: RowIndices) -> float:
        """Return the mean of 2 TP / (2 TP + FP + FN) over the classes that occur."""
        actual, chosen = gold[rows], predicted[rows]
        sides = actual[actual == chosen], actual, chosen
        true_positives, actual_counts, predicted_counts = (
            np.bincount(side, minlength=len(classes)) for side in sides
        )
        total_counts = actual_counts + predicted_counts
        return float((2 * true_positives[total_counts > 0] / total_counts[total_counts > 0]).mean())

    return MetricResult(
        "macro_f1", mean_f1(np.arange(len(gold))), (gold == predicted).astype(np.float64), mean_f1
    )


@dataclass(frozen=True)
class ClassMetrics:
    """The scores of one class. `support` is the number of its examples. A ratio with denominator 0 is 0."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class ConfusionMatrix:
    """`counts[i, j]` is the number of examples of class `labels[i]` with the predicted label `labels[j]`."""

    labels: tuple[str, ...]
    counts: Int[np.ndarray, "C C"]

    def per_class(self) -> list[ClassMetrics]:
        """Return precision, recall and F1 of each class."""
        correct, actual, predicted = np.diag(self.counts), self.counts.sum(1), self.counts.sum(0)
        columns = (
            _safe_divide(correct, predicted),
            _safe_divide(correct, actual),
            _safe_divide(2 * correct, actual + predicted),
            actual,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [ClassMetrics(label, *row) for label, row in zip(self.labels, rows, strict=True)]

    def most_confused(self, k: int) -> list[tuple[str, str, int, float]]:
        """Return the k pairs of classes that are confused most often, the most frequent first.

        A pair is the correct class, the predicted class, the count, and the fraction of examples of the
        correct class.
        """
        errors = self.counts * (1 - np.eye(len(self.labels), dtype=np.int64))
        order = np.argsort(-errors, axis=None, kind="stable")[:k]
        pairs = [divmod(index, len(self.labels)) for index in order.tolist()]
        support = self.counts.sum(1)
        return [
            (self.labels[i], self.labels[j], int(errors[i, j]), float(errors[i, j] / support[i]))
            for i, j in pairs
            if errors[i, j]
        ]

    def most_mistaken(self, k: int) -> list[int]:
        """Return the ids, in ascending order, of the k classes with the most errors: false negatives plus
        false positives."""
        errors = self.counts.sum(0) + self.counts.sum(1) - 2 * np.diag(self.counts)
        class_ids: list[int] = np.sort(np.argsort(-errors, kind="stable")[:k]).tolist()
        return class_ids


def confusion_matrix(references: Sequence[str], outputs: Sequence[str]) -> ConfusionMatrix:
    """Return the confusion matrix over every label in references or outputs, sorted by name.

    Example:

        >>> matrix = metrics.confusion_matrix(["cat", "dog", "dog"], ["cat", "dog", "cat"])
        >>> matrix.labels, matrix.counts.tolist()
        (('cat', 'dog'), [[1, 0], [1, 1]])
    """
    check_pairs(references, outputs)
    classes, gold, predicted = _label_ids(references, outputs)
    size = len(classes)
    counts = np.bincount(gold * size + predicted, minlength=size**2)
    return ConfusionMatrix(classes, counts.reshape(size, size))


def _label_ids(
    references: Sequence[str], outputs: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64]]:
    """Return the sorted labels, and the label ids of references and outputs."""
    classes = tuple(sorted({*references, *outputs}))
    ids = {label: i for i, label in enumerate(classes)}
    gold, predicted = ([ids[label] for label in side] for side in (references, outputs))
    return classes, np.array(gold), np.array(predicted)


def _safe_divide(numerator: Int[np.ndarray, " C"], denominator: Int[np.ndarray, " C"]) -> NDArray[np.float64]:
    """Divide, with 0 / 0 = 0."""
    return numerator / np.maximum(denominator, 1)
