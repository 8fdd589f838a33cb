"""The calibration error of predicted labels: how far their probabilities are from the rates at which they are
correct."""

from collections.abc import Sequence

import numpy as np

from foveal.metrics.score import MetricResult, RowIndices, check_pairs

CALIBRATION_BINS = 15
"""Bins of equal width, as in Guo et al. 2017."""


def calibration_error(
    probabilities: Sequence[Sequence[float]], is_correct: Sequence[Sequence[bool]]
) -> MetricResult:
    """Return the expected calibration error, from 0 (calibrated) to 1 (Naeini et al. 2015; Guo et al. 2017).

        sum_b n_b / n |accuracy_b - confidence_b|

    A prediction is in bin b of B if its probability is in ((b - 1) / B, b / B]; `accuracy_b` is the share of
    the bin's predictions that are correct, and `confidence_b` their mean probability. Each example has the
    probabilities of the predicted labels of its places, such as words, and whether they are correct.

    `per_example` is the mean distance of the probabilities from 1 (correct) or 0.

    Example:

        >>> probabilities, is_correct = [[0.9], [0.8], [0.6]], [[True], [True], [False]]
        >>> round(metrics.calibration_error(probabilities, is_correct).value, 2)
        0.3
    """
    check_pairs(is_correct, probabilities)
    differences = np.zeros((len(probabilities), CALIBRATION_BINS))
    counts, distances = np.zeros(len(probabilities)), np.zeros(len(probabilities))
    for row, (row_probabilities, row_correct) in enumerate(zip(probabilities, is_correct, strict=True)):
        confidence, hits = np.asarray(row_probabilities, np.float64), np.asarray(row_correct, np.float64)
        bins = (np.ceil(confidence * CALIBRATION_BINS).astype(np.int64) - 1).clip(0, CALIBRATION_BINS - 1)
        np.add.at(differences[row], bins, hits - confidence)
        counts[row], distances[row] = len(hits), np.abs(hits - confidence).sum()

    def error_of(rows: RowIndices) -> float:
        return float(np.abs(differences[rows].sum(0)).sum() / max(1.0, counts[rows].sum()))

    return MetricResult(
        "ece",
        error_of(np.arange(len(counts))),
        distances / counts.clip(1),
        error_of,
        higher_is_better=False,
        can_be_resampled=False,  # bins of fewer different rows are further off by chance (Kumar et al. 2019)
        signature=f"bins:{CALIBRATION_BINS}|width:equal|probability:highest",
    )
