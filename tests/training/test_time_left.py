"""The time left counts steps, evaluations and the test, at the pace of now."""

import pytest

from foveal.store.plan import Plan
from foveal.training.plan import Budget, EvaluationSchedule
from foveal.training.time_left import RECENT_STEPS, TimeLeft

PLAN = Plan(100, 50)


def test_evaluations_and_the_test_count() -> None:
    left = TimeLeft(Budget(100.0, "steps"), EvaluationSchedule(10, eval_batches=30), test_batches=60)
    assert left.estimate(0, 0.0, PLAN) is None
    left.step_times.append(0.3)
    assert left.estimate(1, 0.3, PLAN) == pytest.approx((99 * 0.3, (10 * 30 + 60) * 0.1)), "before the first"
    left.evaluation_seconds = 6.0
    assert left.estimate(55, 9.9, PLAN) == pytest.approx((45 * 0.3, 5 * 6.0 + 60 * 0.2))
    assert left.estimate(100, 30.0, PLAN) == pytest.approx((0.0, 12.0))


def test_the_pace_of_now_counts() -> None:
    """After a resume on a slower machine, or when the machine becomes busy."""
    left = TimeLeft(Budget(100.0, "steps"), EvaluationSchedule(0))
    left.step_times.extend([0.1] * 1000)
    left.step_times.extend([0.4] * RECENT_STEPS)
    estimate = left.estimate(50, 1000.0, PLAN)
    assert estimate is not None
    assert estimate.steps == pytest.approx(20.0)


def test_a_time_budget_has_a_time_left_before_its_plan() -> None:
    left = TimeLeft(Budget(60.0, "seconds"), EvaluationSchedule(0, eval_batches=3))
    left.step_times.append(0.5)
    left.evaluation_seconds = 2.0
    estimate = left.estimate(20, 10.0, None)
    assert estimate is not None
    assert estimate.steps == pytest.approx(50.0)
    assert estimate.evaluations == pytest.approx(2.0 * 10)
