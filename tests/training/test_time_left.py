"""The time left is true from early on: steps, evaluations, checkpoints and the test, at the pace of now."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from foveal.config import ScheduleConfig
from foveal.core.callbacks import Record
from foveal.core.signals import Interrupted, SignalHandler
from foveal.store.plan import Plan
from foveal.training import time_left, trainer
from foveal.training.plan import EvaluationSchedule, StepTimer
from foveal.training.time_left import RECENT_STEPS, FinalTest, TimeLeft
from tests.support.toy_training import toy_config, toy_trainer

PLAN = Plan(100, 50)
TEST_BATCHES = 10


def make_time_left(seconds: float, schedule: EvaluationSchedule, test: FinalTest | None = None) -> TimeLeft:
    return TimeLeft(StepTimer(seconds, ScheduleConfig()), schedule, test or FinalTest())


def test_evaluations_and_the_test_count() -> None:
    left = make_time_left(0.0, EvaluationSchedule(10, eval_batches=30), FinalTest(60))
    assert left.estimate(0, 0.0, PLAN) is None
    left.pace.add(0.3)
    assert left.estimate(1, 0.3, PLAN) == pytest.approx((99 * 0.3, (10 * 30 + 60) * 0.1)), "before the first"
    left.test = FinalTest(60, batch_fraction=1 / 8)
    assert left.estimate(1, 0.3, PLAN) == pytest.approx((99 * 0.3, (10 * 30 + 60) * 0.1 / 8)), (
        "smaller batches"
    )
    left.evaluated([0.2] * 30, 7.0)
    assert left.estimate(55, 9.9, PLAN) == pytest.approx((45 * 0.3, 5 * 7.0 + 60 * 0.2))
    assert left.estimate(100, 30.0, PLAN) == pytest.approx((0.0, 12.0))


def test_the_pace_of_now_counts() -> None:
    """After a resume on a slower machine, or when the machine becomes busy. Evaluations follow the steps."""
    left = make_time_left(0.0, EvaluationSchedule(0, eval_batches=1))
    for _ in range(1000):
        left.pace.add(0.1)
    for _ in range(2):
        left.evaluated([0.2], 0.2)
    for _ in range(RECENT_STEPS + 5):
        left.pace.add(0.5)
    estimate = left.estimate(50, 1000.0, PLAN)
    assert estimate is not None
    assert estimate.steps == pytest.approx(25.0)
    assert estimate.others == pytest.approx(6 * 1.0)


def test_outputs_are_tried_out_early_and_then_seldom() -> None:
    tried_at = list[int]()

    def try_outputs() -> float:
        tried_at.append(left.pace.steps)
        return 30.0

    left = make_time_left(0.0, EvaluationSchedule(0), FinalTest(try_outputs=try_outputs))
    for step in range(1, 101):
        left.pace.add(1.0)
        left.try_outputs(step, float(step), PLAN)
    assert tried_at == [5, 10, 20, 40, 80]
    estimate = left.estimate(100, 100.0, PLAN)
    assert estimate is not None
    assert estimate.others == pytest.approx(30.0)


@dataclass
class SlowMachine:
    """A machine whose time passes only while it works: seconds of a step, of a batch, and of a preview."""

    step: float = 1.0
    batch: float = 0.5
    preview: float = 0.0
    first_use: float = 0.0
    """Additional seconds of the first step, and of the first evaluated batch, of a process."""
    factor: Callable[[float], float] = lambda now: 1.0
    """How many times as long everything takes, as a function of the time."""
    now: float = 0.0
    used: set[str] = field(default_factory=set)

    def work(self, what: str, seconds: float) -> None:
        if what in ("train", "evaluate") and what not in self.used:
            seconds += self.first_use
        self.used.add(what)
        while seconds > 0:
            self.now += self.factor(self.now) * min(seconds, 0.1)
            seconds -= 0.1

    def hook(self, what: str, calls: int) -> None:
        self.work(what, {"train": self.step, "evaluate": self.batch, "preview": self.preview}[what])

    def perf_counter(self) -> float:
        return self.now

    monotonic = perf_counter


class Training(NamedTuple):
    """What a training told, as pairs of a time and the time left, and the time of its end."""

    told: list[tuple[float, float]]
    end: float

    def check(self) -> None:
        """Check the time told after 10, 30, 60 and 90 % of the whole time."""
        for fraction in (0.1, 0.3, 0.6, 0.9):
            at, left = max(pair for pair in self.told if pair[0] <= fraction * self.end)
            true = self.end - at
            assert left == pytest.approx(true, rel=0.25), (
                f"{fraction:.0%}: {left:.0f} s told, {true:.0f} s true"
            )


def simulate(
    path: Path,
    machine: SlowMachine,
    monkeypatch: pytest.MonkeyPatch,
    budget: str,
    outputs: float = 0.0,
    stop_at: int | None = None,
) -> Training:
    """Train on the machine, up to a step if given. Then come a test of 10 batches, and its outputs."""
    monkeypatch.setattr(trainer, "time", machine)
    monkeypatch.setattr(time_left, "time", machine)

    def try_outputs() -> float:
        started = machine.now
        machine.work("outputs", outputs / 10)
        return 10 * (machine.now - started)

    test, told = FinalTest(TEST_BATCHES, try_outputs), list[tuple[float, float]]()
    config = toy_config(training={"budget": budget, "evaluate_every": 0, "checkpoint_seconds": 1e9})
    toy = toy_trainer(path, config, hook=machine.hook, test=test)

    def step(record: Record) -> None:
        told.append((machine.now, record["seconds_left"] or 0.0))
        if record["step"] == stop_at:
            raise Interrupted(2)

    monkeypatch.setattr(toy.recorder, "on_step", step)
    with suppress(Interrupted):
        toy.run(SignalHandler())
    for _ in range(TEST_BATCHES):
        machine.work("evaluate", machine.batch)
    machine.work("outputs", outputs)
    return Training(told, machine.now)


@pytest.mark.parametrize("budget", ["150s", "150steps"])
@pytest.mark.parametrize("outputs", [0.0, 60.0], ids=["", "outputs"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"batch": 0.1, "first_use": 6.0},
        {"batch": 1.0, "preview": 1.0, "first_use": 4.0},
        {"factor": lambda now: 4.0 if now % 3 < 0.5 else 1.0},
        {"factor": lambda now: 1.0 if now < 1 else 2.5},
    ],
    ids=["steady", "slow first use", "slow evaluations", "busy now and then", "busy from early on"],
)
def test_what_is_told_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], budget: str, outputs: float
) -> None:
    simulate(tmp_path / "run", SlowMachine(**settings), monkeypatch, budget, outputs).check()


@pytest.mark.parametrize("budget", ["150s", "150steps"])
def test_a_resumed_training_tells_the_time_of_its_own_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str
) -> None:
    simulate(tmp_path / "run", SlowMachine(first_use=5.0), monkeypatch, budget, stop_at=30)
    simulate(tmp_path / "run", SlowMachine(3.0, 2.0, first_use=5.0), monkeypatch, budget).check()
