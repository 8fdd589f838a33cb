"""Scores of one label an example: accuracy, F1, and who is taken for whom."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from foveal.metrics.score import MetricResult, RowIndices, check_pairs, success_rate


def accuracy(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """The share of examples with the right label."""
    check_pairs(references, outputs)
    errors = [output != reference for output, reference in zip(outputs, references, strict=True)]
    return success_rate("accuracy", errors, [1] * len(errors))


def macro_f1(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """The mean of the classes' F1, each class counting alike. `per_example`: 1 for the right label, 0 else.

    The classes of a selection are those that it has, or that its outputs name.
    """
    check_pairs(references, outputs)
    classes, gold, predicted = _label_ids(references, outputs)

    def of(rows: RowIndices) -> float:
        """The mean over the classes that occur of 2 TP / (2 TP + FP + FN)."""
        actual, given = gold[rows], predicted[rows]
        sides = actual[actual == given], actual, given
        right, had, named = (np.bincount(side, minlength=len(classes)) for side in sides)
        both = had + named
        return float((2 * right[both > 0] / both[both > 0]).mean())

    return MetricResult("macro_f1", of(np.arange(len(gold))), (gold == predicted).astype(np.float64), of)


@dataclass(frozen=True)
class ClassMetrics:
    """`support` is how many examples are of this class. A share of nothing is 0."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class ConfusionMatrix:
    """`counts[i, j]`: how many examples of class `labels[i]` were given `labels[j]`."""

    labels: tuple[str, ...]
    counts: Int[np.ndarray, "C C"]

    def per_class(self) -> list[ClassMetrics]:
        right, actual, given = np.diag(self.counts), self.counts.sum(1), self.counts.sum(0)
        columns = (
            _safe_divide(right, given),
            _safe_divide(right, actual),
            _safe_divide(2 * right, actual + given),
            actual,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [ClassMetrics(label, *row) for label, row in zip(self.labels, rows, strict=True)]

    def most_confused(self, k: int) -> list[tuple[str, str, int, float]]:
        """Pairs of classes most often confused, the worst first: what is right, what was given, how often,
        and of what share of the class."""
        wrong = self.counts * (1 - np.eye(len(self.labels), dtype=np.int64))
        order = np.argsort(-wrong, axis=None, kind="stable")[:k]
        pairs = [divmod(place, len(self.labels)) for place in order.tolist()]
        support = self.counts.sum(1)
        return [
            (self.labels[i], self.labels[j], int(wrong[i, j]), float(wrong[i, j] / support[i]))
            for i, j in pairs
            if wrong[i, j]
        ]

    def most_mistaken(self, k: int) -> list[int]:
        """The numbers of the classes that have most mistakes, made of them or for them, in their order."""
        mistakes = self.counts.sum(0) + self.counts.sum(1) - 2 * np.diag(self.counts)
        numbers: list[int] = np.sort(np.argsort(-mistakes, kind="stable")[:k]).tolist()
        return numbers


def confusion_matrix(references: Sequence[str], outputs: Sequence[str]) -> ConfusionMatrix:
    """Over every label that occurs on either side, in the order of their names."""
    check_pairs(references, outputs)
    classes, gold, predicted = _label_ids(references, outputs)
    size = len(classes)
    counts = np.bincount(gold * size + predicted, minlength=size**2)
    return ConfusionMatrix(classes, counts.reshape(size, size))


def _label_ids(
    references: Sequence[str], outputs: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64]]:
    classes = tuple(sorted({*references, *outputs}))
    number = {label: i for i, label in enumerate(classes)}
    gold, predicted = ([number[label] for label in side] for side in (references, outputs))
    return classes, np.array(gold), np.array(predicted)


def _safe_divide(part: Int[np.ndarray, " C"], whole: Int[np.ndarray, " C"]) -> NDArray[np.float64]:
    return part / np.maximum(whole, 1)
