"""What each rule of the diagnosis compares."""

import re

import numpy as np

from foveal.inspection.diagnosis.diagnose import diagnose
from foveal.inspection.diagnosis.history import History
from tests.support.synthetic_curves import LN10, PROBLEMS, history


def names(past: History) -> list[str]:
    return [finding.name for finding in diagnose(past)]


def test_the_start_is_at_most_a_guess() -> None:
    past = history(lambda t: np.full_like(t, 9.0), None, 0)
    assert past.start == LN10


def test_the_first_step_that_was_not_finite_is_named() -> None:
    past = history(lambda t: 2 - t, None, 0, nonfinite=((3, "the loss"), (9, "a gradient")))
    (finding, *_) = diagnose(past)
    assert finding.step == 3
    assert "the loss" in finding.evidence


def test_a_high_loss_with_a_much_higher_held_out_loss_is_not_underfitting() -> None:
    def high(t: np.ndarray) -> np.ndarray:
        return np.full_like(t, 2.1)

    assert "underfitting" in names(history(high, high, 0))
    assert "underfitting" not in names(history(high, lambda t: np.full_like(t, 3.0), 0))


def test_the_share_of_a_guess_is_below_one() -> None:
    past = PROBLEMS["both losses high"][1](0)
    (finding,) = diagnose(past)
    share = re.search(r"(\d+)%", finding.evidence)
    assert share is not None
    assert int(share[1]) == round(100 * past.between(0.75, 1.0).mean / past.start)


def test_a_held_out_loss_that_still_falls_is_no_plateau() -> None:
    def stops(t: np.ndarray) -> np.ndarray:
        return np.maximum(1.0, 2.2 - 4 * t)

    assert "plateau" in names(history(stops, stops, 0))
    assert "plateau" not in names(history(stops, lambda t: 2.2 - t, 0))
