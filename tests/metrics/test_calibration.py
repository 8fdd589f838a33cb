"""The calibration error, against its definition and by what it means."""

import numpy as np
import pytest

from foveal.metrics.calibration import CALIBRATION_BINS, calibration_error


def error_by_definition(probabilities: list[float], is_correct: list[bool]) -> float:
    """Return sum_b n_b / n |accuracy_b - confidence_b|, bin by bin."""
    error = 0.0
    for b in range(1, CALIBRATION_BINS + 1):
        inside = [
            index
            for index, probability in enumerate(probabilities)
            if (b - 1) / CALIBRATION_BINS < probability <= b / CALIBRATION_BINS
        ]
        if inside:
            confidence = np.mean([probabilities[index] for index in inside])
            accuracy = np.mean([is_correct[index] for index in inside])
            error += len(inside) / len(probabilities) * float(abs(accuracy - confidence))
    return error


@pytest.mark.parametrize("places", [1, 3])
def test_the_error_is_that_of_the_definition(places: int) -> None:
    chance = np.random.default_rng(0)
    probabilities = chance.uniform(0, 1, (200, places)).tolist()
    probabilities[0][0], probabilities[1][0], probabilities[2][0] = 1.0, 1 / 3, 1e-12
    is_correct = (chance.uniform(size=(200, places)) < 0.6).tolist()
    score = calibration_error(probabilities, is_correct)
    flat = [value for row in probabilities for value in row], [value for row in is_correct for value in row]
    assert score.value == pytest.approx(error_by_definition(*flat), abs=1e-12)
    rows = np.array([5, 5, 7, 0])
    some = [p for row in rows for p in probabilities[row]], [c for row in rows for c in is_correct[row]]
    assert score.on_rows(rows) == pytest.approx(error_by_definition(*some), abs=1e-12)
    assert not score.higher_is_better
    assert f"bins:{CALIBRATION_BINS}" in score.signature


def test_right_as_often_as_said_has_no_error() -> None:
    assert calibration_error([[0.75]] * 4, [[True], [True], [False], [True]]).value == 0
    assert calibration_error([[1.0]] * 4, [[False]] * 4).value == 1
    assert calibration_error([[1.0]], [[True]]).per_example.tolist() == [0]
