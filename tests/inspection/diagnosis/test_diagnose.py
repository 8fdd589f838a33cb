"""Curves whose course is known get the right verdict, and healthy ones none."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foveal.inspection.diagnosis.diagnose import MIN_STEPS, RULES, diagnose
from foveal.inspection.diagnosis.held_out import leak, overfitting
from foveal.inspection.diagnosis.history import History, history_from_records
from tests.support.synthetic_curves import (
    HEALTHY,
    LN10,
    LN65,
    PROBLEMS,
    constant,
    falling,
    history,
    linear_decay,
)

SEEDS = range(12)
CLOSE = {
    "spikes": (160,),
    "straight and slow": (7, 28, 118, 188),
    "flat, then a drop": (227, 358),
    "loss stays, rate high": (34, 64, 122, 141, 153, 162, 166),
    "both losses high": (548, 580, 824, 897, 973),
}
"""Seeds whose noise lies as far from the course as it does once in some hundred trainings."""


@pytest.mark.parametrize("curve", PROBLEMS)
def test_the_right_verdict(curve: str) -> None:
    verdict, make = PROBLEMS[curve]
    assert [[finding.name for finding in diagnose(make(seed))] for seed in SEEDS] == [[verdict]] * len(SEEDS)


@pytest.mark.parametrize("curve", CLOSE)
def test_the_right_verdict_in_spite_of_rare_noise(curve: str) -> None:
    verdict, make = PROBLEMS[curve]
    found = {seed: [finding.name for finding in diagnose(make(seed))] for seed in CLOSE[curve]}
    assert found == {seed: [verdict] for seed in CLOSE[curve]}
    assert diagnose(HEALTHY["small batches"](235)) == [], "a first batch that is far off"


def test_every_rule_has_a_curve() -> None:
    assert {rule.name for rule in RULES} == {verdict for verdict, _ in PROBLEMS.values()}
    assert len(PROBLEMS) >= 12
    assert len(HEALTHY) == 6


@pytest.mark.parametrize("curve", HEALTHY)
def test_healthy_curves_have_none(curve: str) -> None:
    assert [diagnose(HEALTHY[curve](seed)) for seed in SEEDS] == [[]] * len(SEEDS)


def test_the_evidence_has_the_numbers() -> None:
    (finding,) = diagnose(PROBLEMS["held-out loss rises"][1](0))
    past = PROBLEMS["held-out loss rises"][1](0)
    lowest = past.held_out.min()
    assert finding.step == past.held_out_steps[past.held_out.argmin()]
    assert f"from {lowest:.3f} to {past.held_out[-2:].mean():.3f}" in finding.evidence
    assert all(finding.to_json().values())
    (finding,) = diagnose(PROBLEMS["NaN"][1](0))
    assert finding.step == 301
    assert "1 time a number was not finite, first at step 301 in loss" in finding.evidence
    (finding,) = diagnose(PROBLEMS["first loss far above ln C"][1](0))
    assert "a guess among 10 outcomes has 2.303" in finding.evidence
    (finding,) = diagnose(PROBLEMS["loss rises for good"][1](0))
    assert 600 <= finding.step <= 850
    (finding,) = diagnose(PROBLEMS["flat, then a drop"][1](0))
    assert 250 <= finding.step <= 420


def test_augmentation_is_no_leak() -> None:
    """What is far below is a leak, unless the training rows are made harder."""
    past = history(falling(2.3, 1.0, 6), falling(2.0, 0.4, 6), 0)
    assert [finding.name for finding in diagnose(past)] == ["leak"]
    assert diagnose(replace(past, regularizers=("model.dropout=0.5",))) == []


def test_a_decay_of_the_rate_is_no_plateau_and_warm_up_no_flat_start() -> None:
    past = PROBLEMS["loss stays, rate high"][1](0)
    assert diagnose(replace(past, rate=np.linspace(0.1, 0, len(past.rate)))) == []
    slow_start = history(lambda t: falling(2.3, 0.4, 8)(np.clip(t - 0.2, 0, None)), None, 0)
    assert [finding.name for finding in diagnose(slow_start)] == ["bad first weights: flat start"]
    warm_up = np.minimum(slow_start.rate, 0.1 * (np.arange(1, 1001) / 230) ** 2)
    assert diagnose(replace(slow_start, rate=warm_up)) == []


def test_a_rise_may_take_its_time() -> None:
    """As of a language model at a rate a hundred times too high: it falls to the frequencies of letters in a
    few steps, rises from part to part, and falls with the rate at the end."""
    levels = [3.56, 3.62, 5.52, 4.98, 4.65, 4.52, 4.86, 4.45, 3.95, 4.4, 4.6, 4.43, 3.72, 3.26, 2.94, 2.76]
    course = np.interp(np.arange(1000), np.arange(16) * 63 + 31, levels)
    course += 0.6 * np.exp(-np.arange(1000) / 8)
    past = history(lambda t: course, None, 0, rate=linear_decay, chance=LN65)
    (finding,) = diagnose(past)
    assert finding.name == "rate too high"
    assert 60 <= finding.step <= 130


def test_an_unknown_number_of_outcomes() -> None:
    """Without ln C no first loss is too high, and the start is the first loss."""
    past = replace(PROBLEMS["both losses high"][1](0), chance=None)
    assert "of the first" in diagnose(past)[0].evidence
    first = replace(PROBLEMS["first loss far above ln C"][1](0), chance=None)
    assert "bad first weights: first loss" not in [finding.name for finding in diagnose(first)]


def test_a_training_that_goes_on_is_not_called_unconverged() -> None:
    past = PROBLEMS["stopped while it fell"][1](0)
    assert [finding.name for finding in diagnose(past)] == ["not converged"]
    assert diagnose(replace(past, is_at_its_end=False)) == []


@pytest.mark.parametrize("steps", [0, 1, 2, MIN_STEPS - 1])
def test_too_few_steps_have_no_shape(steps: int) -> None:
    past = (
        history(lambda t: 2 + t, None, 0, steps=steps)
        if steps
        else history_from_records({"step": [], "evaluation": [], "refused": []})
    )
    assert diagnose(past) == []
    spoiled = replace(past, nonfinite=((1, "loss"),))
    assert [finding.name for finding in diagnose(spoiled)] == ["numbers not finite"]


@pytest.mark.parametrize("steps", [MIN_STEPS, MIN_STEPS + 1, 79, 80, 81])
@pytest.mark.parametrize("loss", [0.0, -1.0, 2.0])
def test_constant_losses_of_any_sign_raise_nothing(steps: int, loss: float) -> None:
    """Losses below 0 have no share of the start that means anything; there is no error."""
    past = history(lambda t: np.full_like(t, loss), lambda t: np.full_like(t, loss), 0, steps=steps)
    assert all(finding.name in ("underfitting",) for finding in diagnose(past))


def test_records_become_arrays() -> None:
    records: dict[str, list[dict[str, Any]]] = {
        "step": [
            {"step": 1, "loss": 2.0, "rate": 0.1},
            {"step": 2, "loss": None, "rate": 0.1},
            {"step": 4, "loss": 1.0, "rate": 0.2},
        ],
        "evaluation": [{"step": 4, "loss": None}, {"step": 5, "loss": 3.0}],
        "refused": [{"step": 3, "culprit": "loss term loss"}],
    }
    past = history_from_records(records, LN10)
    assert past.steps.tolist() == [1, 4]
    assert past.held_out.tolist() == [3.0]
    assert past.nonfinite == ((3, "loss term loss"), (4, "the held-out loss"))
    assert past.start == 1.5


def test_noise_and_levels() -> None:
    """A straight course cancels; the standard error is that of independent noise."""
    random = np.random.default_rng(0)
    t = np.linspace(0, 1, 4000)
    past = History(
        np.arange(4000),
        5 - 3 * t + 0.2 * random.standard_normal(4000),
        constant(t),
        np.arange(4000),
        5 - 3 * t + 0.1 * random.standard_normal(4000),
    )
    assert past.held_out_noise == pytest.approx(0.1, rel=0.1)
    assert past.between(0.0, 1.0).error == pytest.approx(0.2 / math.sqrt(4000), rel=0.1)
    assert past.between(0.0, 1.0).mean == pytest.approx(3.5, abs=0.02)


def names(past: History) -> list[str]:
    return [finding.name for finding in diagnose(past)]


def test_the_start_is_at_most_the_loss_of_a_guess() -> None:
    assert history(lambda t: 5 + 0 * t, None, 0, noise=0).start == LN10
    assert history(lambda t: 2 + 0 * t, None, 0, noise=0).start == 2


def test_the_first_of_several_spoiled_steps_is_named() -> None:
    past = replace(PROBLEMS["NaN"][1](0), nonfinite=((301, "loss"), (400, "gradient")))
    (finding,) = diagnose(past)
    assert finding.step == 301
    assert "2 times a number was not finite, first at step 301 in loss" in finding.evidence


def test_a_log_without_its_first_step_has_no_first_loss() -> None:
    past = PROBLEMS["first loss far above ln C"][1](0)
    assert "bad first weights: first loss" not in names(replace(past, steps=past.steps + 100))


def test_underfitting_is_told_as_a_share_of_the_start() -> None:
    (finding,) = diagnose(history(lambda t: 0.9 * LN10 + 0 * t, None, 0, noise=0))
    assert finding.name == "underfitting"
    assert "ends at 2.072, 100% of a guess's 2.072" in finding.evidence, "the first losses are no higher"
    (finding,) = diagnose(history(falling(3, 0.9 * LN10, 30), None, 0, noise=0))
    assert "ends at 2.072, 90% of a guess's 2.303" in finding.evidence


def test_a_large_gap_is_no_underfitting() -> None:
    course = falling(2.3, 1.75, 12)
    assert names(history(course, falling(2.3, 1.8, 12), 0)) == ["underfitting"]
    assert names(history(course, falling(2.3, 2.1, 12), 0)) == []


def test_a_held_out_loss_that_falls_is_no_plateau() -> None:
    course = falling(2.3, 0.9, 16)
    assert names(history(course, lambda t: 1.4 + 0 * t, 0, steps=5000)) == ["plateau"]
    assert names(history(course, lambda t: 1.9 - 0.5 * t, 0, steps=5000)) == []


def test_a_held_out_loss_below_that_of_training_stands_without_overfitting() -> None:
    course = falling(2.3, 0.6, 3)
    assert overfitting(history(course, lambda t: 0.9 + 0 * t, 0)) is not None
    assert overfitting(history(course, lambda t: 0.5 + 0 * t, 0)) is None


def test_a_few_low_evaluations_are_no_leak() -> None:
    past = history(falling(2.3, 1.0, 6), falling(2.0, 0.2, 6), 0)
    assert leak(past) is not None
    assert leak(replace(past, held_out=np.where(np.arange(12) == 9, 0.9, past.held_out))) is None
