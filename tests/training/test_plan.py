"""The rate is a function of (step, plan); budgets become plans at the right moment."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.config import ScheduleConfig
from foveal.core.errors import UserError
from foveal.store.plan import Plan
from foveal.training.plan import (
    Budget,
    EvaluationSchedule,
    StepTimer,
    budget_to_steps,
    limit_warmup,
    lr_at,
    make_plan,
    max_evaluations,
    parse_budget,
)
from tests.support.toy_training import toy_config, train


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("90s", 90.0, "seconds"),
        ("3m", 180.0, "seconds"),
        ("1.5h", 5400.0, "seconds"),
        ("2000steps", 2000.0, "steps"),
        ("1step", 1.0, "steps"),
        ("2ksteps", 2000.0, "steps"),
        ("5epochs", 5.0, "epochs"),
        ("0.5 epochs", 0.5, "epochs"),
        ("10Mtokens", 10_000_000.0, "tokens"),
        (" 10M tokens", None, None),
    ],
)
def test_budgets_are_read(text: str, amount: float | None, unit: str | None) -> None:
    if amount is None:
        with pytest.raises(UserError):
            parse_budget(text)
    else:
        assert parse_budget(text) == Budget(amount, unit)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "3", "m", "-3m", "0s", "3x", "3M", "nan s", "1e3s", "9" * 400 + "s"])
def test_nonsense_is_one_plain_line(text: str) -> None:
    with pytest.raises(UserError, match="expected an amount above 0, such as 90s, 3m") as error:
        parse_budget(text)
    assert "\n" not in str(error.value)


def test_counted_budgets() -> None:
    assert budget_to_steps(Budget(7.0, "steps"), 10, 4, 100) == 7
    assert budget_to_steps(Budget(3.0, "epochs"), 10, 4, 100) == 8
    assert budget_to_steps(Budget(1001.0, "tokens"), 10, 4, 100) == 11
    assert budget_to_steps(Budget(0.001, "epochs"), 10, 4, 100) == 1


@pytest.mark.parametrize("name", ["constant", "linear", "cosine"])
def test_rate_is_warmed_up_held_and_falls(name: Any) -> None:
    schedule = ScheduleConfig(name=name, warmup_steps=4, decay_start=0.5, final_lr_fraction=0.1)
    plan = make_plan(20, schedule)
    rates = [lr_at(step, plan, schedule, 2.0) for step in range(20)]
    assert rates[:4] == [0.5, 1.0, 1.5, 2.0]
    assert rates[4:11] == [2.0] * 7
    if name == "constant":
        assert rates[11:] == [2.0] * 9
    elif name == "linear":
        for step in range(11, 20):
            assert rates[step] == pytest.approx(2 * (1 - 0.9 * (step - 10) / 10), rel=1e-12)
    else:
        for step in range(11, 20):
            cosine = (1 + math.cos(math.pi * (step - 10) / 10)) / 2
            assert rates[step] == pytest.approx(2 * (0.1 + 0.9 * cosine), rel=1e-12)


def test_no_warmup_and_short_runs_are_defined() -> None:
    schedule = ScheduleConfig(warmup_steps=0, decay_start=0.0)
    assert lr_at(0, make_plan(1, schedule), schedule, 1.0) == 1.0
    longer_warmup = ScheduleConfig(warmup_steps=50)
    rates = [lr_at(step, make_plan(20, longer_warmup), longer_warmup, 1.0) for step in range(20)]
    assert rates == [(step + 1) / 50 for step in range(20)]


def pace_until_plan(seconds: float, schedule: ScheduleConfig, step_times: list[float]) -> tuple[Plan, float]:
    pace, elapsed = StepTimer(seconds, schedule), 0.0
    for step in range(100_000):
        if plan := pace.plan(step, elapsed):
            return plan, elapsed
        took = step_times[min(step, len(step_times) - 1)]
        pace.step_times.append(took)
        elapsed += took
    raise AssertionError("the budget never became a plan")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("name", ["linear", "constant"])
def test_a_time_budget_becomes_a_plan_before_the_rate_depends_on_it(name: Any, share: float) -> None:
    schedule = ScheduleConfig(name=name, warmup_steps=20, decay_start=share)
    slow_start = [2.0, 0.5] + [0.1] * 30
    plan, elapsed = pace_until_plan(60.0, schedule, slow_start)
    held = [lr_at(step, None, schedule, 1.0) for step in range(plan.decided_at)]
    assert held == [lr_at(step, plan, schedule, 1.0) for step in range(plan.decided_at)]
    assert plan.decay_start >= plan.decided_at
    total_time = 2.5 + 0.1 * (plan.total_steps - 2)
    assert total_time == pytest.approx(60.0, abs=0.2)
    expected = 1.0 if name == "constant" else share
    assert elapsed == pytest.approx(max(expected * 60.0, 2.5 + 0.1 * 18), abs=0.11)


def test_a_machine_that_slows_down_never_moves_the_fall_into_the_past() -> None:
    plan, _ = pace_until_plan(60.0, ScheduleConfig(warmup_steps=5, decay_start=0.5), [0.1] * 100 + [1.0])
    assert plan.decided_at > plan.total_steps // 2
    assert plan.decay_start == plan.decided_at


def test_a_budget_shorter_than_the_warm_up_still_ends() -> None:
    plan, elapsed = pace_until_plan(1.0, ScheduleConfig(warmup_steps=50), [0.3])
    assert plan == Plan(4, 4, 4)
    assert elapsed == pytest.approx(1.2)


def test_at_least_one_step() -> None:
    assert StepTimer(0.001, ScheduleConfig()).plan(0, 0.0) is None


def test_after_a_resume_the_new_pace_decides() -> None:
    pace = StepTimer(100.0, ScheduleConfig(warmup_steps=5))
    assert pace.plan(500, 50.0) is None
    pace.step_times += [0.4, 0.2]
    plan = pace.plan(502, 50.6)
    assert plan is not None
    assert plan.total_steps == 502 + round(49.4 / 0.2)


@pytest.mark.parametrize("total", [1, 7, 12, 100, 2345])
def test_about_twelve_evaluations_and_the_last(total: int) -> None:
    plan = make_plan(total, ScheduleConfig())
    due = [step for step in range(total + 1) if EvaluationSchedule(0).due(step, plan)]
    assert due[-1] == total
    assert 0 not in due
    assert len(due) == min(total, 12)


def test_evaluations_before_the_plan_do_not_change_when_it_is_made() -> None:
    plan = make_plan(3000, ScheduleConfig(), decided_at=1500)
    steps = range(1501)
    without = [EvaluationSchedule(0).due(step, None) for step in steps]
    assert without == [EvaluationSchedule(0).due(step, plan) for step in steps]
    due = [step for step in range(3001) if EvaluationSchedule(0).due(step, plan)]
    assert due == [16, 32, 64, 128, 256, 512, 1024, 1750, 2000, 2250, 2500, 2750, 3000]


def test_every_is_obeyed() -> None:
    plan = make_plan(25, ScheduleConfig())
    assert [step for step in range(26) if EvaluationSchedule(10).due(step, plan)] == [10, 20, 25]
    assert [step for step in range(26) if EvaluationSchedule(10).due(step, None)] == [10, 20]


@pytest.mark.parametrize(("total", "share"), [(100, 0.3), (40, 0.25), (20, 0.5), (10, 1.0), (7, 2 / 7)])
@pytest.mark.parametrize("final", [0.0, 1 / 25 / 1e4, 0.1])
def test_one_cycle_is_torchs(total: int, share: float, final: float) -> None:
    """Its default form: two phases along a cosine, from 1/25; the same rates at every step."""
    schedule = ScheduleConfig(name="one-cycle", decay_start=share, final_lr_fraction=final, warmup_steps=50)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    divisor = 1 / 25 / final if final else math.inf
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 2.0, total, pct_start=share, final_div_factor=divisor, cycle_momentum=False
    )
    plan = make_plan(total, schedule)
    for step in range(total):
        assert lr_at(step, plan, schedule, 2.0) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        if step < total - 1:
            theirs.step()


def test_one_cycle_of_a_time_budget_begins_when_its_length_is_known() -> None:
    """At the lowest rate until then; the rest is one cycle of the steps that are left."""
    schedule = ScheduleConfig(name="one-cycle", warmup_steps=20, decay_start=0.3, final_lr_fraction=0.001)
    plan, elapsed = pace_until_plan(60.0, schedule, [2.0, 0.5] + [0.1] * 30)
    assert plan.decided_at == 20
    assert elapsed == pytest.approx(2.5 + 0.1 * 18)
    before = [lr_at(step, None, schedule, 1.0) for step in range(20)]
    assert before == [lr_at(step, plan, schedule, 1.0) for step in range(20)] == [1 / 25] * 20
    left = plan.total_steps - 20
    alone = make_plan(left, schedule)
    after = [lr_at(20 + step, plan, schedule, 1.0) for step in range(left)]
    assert after == pytest.approx([lr_at(step, alone, schedule, 1.0) for step in range(left)], abs=1e-12)
    assert max(after) == 1
    assert after.index(1) == round(0.3 * left) - 1
    assert after[-1] == pytest.approx(0.001)


@pytest.mark.parametrize("total", [1, 2, 3])
def test_the_shortest_cycles_are_defined(total: int) -> None:
    for share in (0.0, 0.5, 1.0):
        schedule = ScheduleConfig(name="one-cycle", decay_start=share)
        rates = [lr_at(step, make_plan(total, schedule), schedule, 1.0) for step in range(total)]
        assert max(rates) == 1
        assert min(rates) >= 0


def test_a_run_is_trained_at_these_rates(tmp_path: Path) -> None:
    config = toy_config(schedule={"name": "one-cycle", "decay_start": 0.5, "final_lr_fraction": 0.1})
    done = train(tmp_path / "run", config)
    plan = done.state.plan
    expected = [lr_at(step, plan, config.schedule, config.optimizer.lr) for step in range(12)]
    assert [record["rate"] for record in done.recorder.steps] == expected
    assert expected.index(config.optimizer.lr) == 5


@pytest.mark.parametrize(
    ("total", "warmup"), [(3, 0), (34, 3), (499, 49), (500, 50), (10_000, 50)], ids=lambda value: str(value)
)
def test_a_warm_up_takes_at_most_a_tenth_of_the_steps(total: int, warmup: int) -> None:
    schedule = limit_warmup(ScheduleConfig(warmup_steps=50), total)
    assert schedule == ScheduleConfig(warmup_steps=warmup)
    assert lr_at(warmup, make_plan(total, schedule), schedule, 1.0) == 1.0, "the highest rate is reached"


@pytest.mark.parametrize("name", ["linear", "one-cycle"])
def test_a_time_budget_of_few_steps_becomes_a_plan_after_a_tenth(name: Any) -> None:
    """Ten slow steps of calibration would be a third of this training."""
    schedule = ScheduleConfig(name=name, warmup_steps=3, decay_start=0.3)
    plan, elapsed = pace_until_plan(40.0, schedule, [1.2])
    assert plan.total_steps == pytest.approx(33, abs=1)
    assert elapsed == pytest.approx(12.6 if name == "linear" else 4.8, abs=0.7)
    assert max(lr_at(step, plan, schedule, 1.0) for step in range(plan.total_steps)) == pytest.approx(1.0)


def test_evaluations_never_take_longer_than_the_training() -> None:
    assert max_evaluations(eval_batches=10, train_batches=600) == 12
    assert max_evaluations(eval_batches=200, train_batches=34) == 1
    schedule, plan = EvaluationSchedule(0, eval_batches=200), make_plan(34, ScheduleConfig())
    assert [step for step in range(35) if schedule.due(step, plan)] == [34]
    assert [step for step in range(100) if schedule.due(step, None)] == [64]


@pytest.mark.parametrize("every", [0, 7])
@pytest.mark.parametrize("eval_batches", [0, 40, 900])
@pytest.mark.parametrize(("total", "decided"), [(1, 0), (34, 0), (300, 100), (50, 50)])
def test_evaluations_left_are_those_due(every: int, eval_batches: int, total: int, decided: int) -> None:
    schedule, plan = EvaluationSchedule(every, eval_batches), make_plan(total, ScheduleConfig(), decided)
    for step in range(total + 1):
        due = sum(schedule.due(later, plan) for later in range(step + 1, total + 1))
        assert schedule.left(step, plan) == due
