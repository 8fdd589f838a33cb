"""The time that a training still takes, from the pace of its recent steps, evaluations and checkpoints."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from foveal.core.errors import RunFailed, UserError
from foveal.core.progress import SecondsLeft
from foveal.store.plan import Plan
from foveal.training.plan import FORWARDS_PER_STEP, EvaluationSchedule, StepTimer

RECENT_STEPS, RECENT_SECONDS = 20, 10.0
"""The pace is the mean time of at least so many steps, and of the steps of at least so many seconds."""
FIRST_TRIAL, TRIAL_FRACTION = 0.05, 0.03
"""Fraction of the steps after which test outputs are tried out, and of the training's time that all further
trials may take."""


@dataclass(frozen=True)
class FinalTest:
    """The test after a training."""

    batches: int = 0
    """The number of batches whose loss is computed."""
    try_outputs: Callable[[], float] = float
    """Generates a part of the outputs, and returns the seconds that all of them take, and all else after
    them."""
    batch_fraction: float = 1.0
    """The size of an evaluated batch as a fraction of a training batch's, until an evaluation is timed."""


class StepPace:
    """The mean time of recent steps of this process.

    The first step counts only while it is the only one, because it includes the first use of torch's parts.
    """

    def __init__(self) -> None:
        self.steps, self._recent, self._total = 0, deque[float](), 0.0

    def add(self, seconds: float) -> None:
        """Add a step."""
        if self.steps == 1:
            self._recent.clear()
            self._total = 0.0
        self.steps += 1
        self._recent.append(seconds)
        self._total += seconds
        while len(self._recent) > RECENT_STEPS and self._total - self._recent[0] >= RECENT_SECONDS:
            self._total -= self._recent.popleft()

    @property
    def seconds(self) -> float | None:
        """Seconds of a step; None before the first."""
        return self._total / len(self._recent) if self._recent else None


@dataclass
class TimeLeft:
    """Estimates the time left of a training.

    `timer` converts a budget in seconds. All other work than steps is measured in steps, so that its time
    follows the pace.
    """

    timer: StepTimer
    schedule: EvaluationSchedule
    test: FinalTest = field(default_factory=FinalTest)
    pace: StepPace = field(default_factory=StepPace)
    _steps_per_batch: float | None = None
    """The steps that take as long as a batch of the last evaluation."""
    _steps_beside: float = 0.0
    """The steps that take as long as what an evaluation does beside its batches."""
    _steps_of_outputs: float = 0.0
    """The steps that take as long as the outputs of the test, in the last trial."""
    _save_fraction: float = 0.0
    """The time of a checkpoint as a fraction of the time from one to the next."""
    _trial_seconds: float = 0.0
    """Seconds of all trials of outputs."""
    _tried_at: float = 0.0
    """Seconds of training before the last trial."""

    def evaluated(self, batch_seconds: Sequence[float], seconds: float) -> None:
        """Take the seconds of an evaluation, and of each of its batches.

        The first batch of the first evaluation of a process counts as much as the second, or as a step.
        """
        if not self.pace.seconds:
            return
        times = list(batch_seconds)
        self._steps_beside = max(0.0, seconds - sum(times)) / self.pace.seconds
        if times:
            if self._steps_per_batch is None:
                times[0] = min(times[0], times[1] if len(times) > 1 else self.pace.seconds)
            self._steps_per_batch = sum(times) / len(times) / self.pace.seconds

    def saved(self, seconds: float, interval: float) -> None:
        """Take the time of a checkpoint. `interval` is the time from one checkpoint to the next."""
        self._save_fraction = seconds / max(interval, seconds)

    def try_outputs(self, step: int, trained_seconds: float, plan: Plan | None) -> None:
        """Try out a part of the test's outputs after `step` steps, if that is due: early in the training, and
        whenever the training has become twice as long. Weights that can't generate take no time."""
        if self.pace.seconds is None or self.pace.steps == 1 or trained_seconds < 2 * self._tried_at:
            return
        total_steps = (plan or self.timer.expected(step, trained_seconds, self.pace.seconds)).total_steps
        in_time = FIRST_TRIAL * total_steps <= step < total_steps
        if not in_time or self._trial_seconds > TRIAL_FRACTION * trained_seconds:
            return
        started = time.perf_counter()
        try:
            seconds = self.test.try_outputs()
        except (RunFailed, UserError):
            seconds = 0.0
        self._trial_seconds += time.perf_counter() - started
        self._tried_at, self._steps_of_outputs = trained_seconds, seconds / self.pace.seconds

    def estimate(self, step: int, trained_seconds: float, plan: Plan | None) -> SecondsLeft | None:
        """Return the time left after `step` steps, which took `trained_seconds`; None before the first."""
        pace = self.pace.seconds
        if pace is None:
            return None
        plan = plan or self.timer.expected(step, trained_seconds, pace)
        per_batch = self._steps_per_batch
        if per_batch is None:
            per_batch = self.test.batch_fraction / self.schedule.grad_accumulation / FORWARDS_PER_STEP
        evaluation = self.schedule.eval_batches * per_batch + self._steps_beside
        test = self.test.batches * per_batch + self._steps_of_outputs
        seconds = max(0, plan.total_steps - step) * pace
        others = (self.schedule.left(step, plan) * evaluation + test) * pace
        return SecondsLeft(seconds, others + self._save_fraction * seconds)

    def to_record(self, step: int, trained_seconds: float, plan: Plan | None) -> dict[str, float | None]:
        """Return the estimate as a part of a step's record."""
        left = self.estimate(step, trained_seconds, plan)
        if left is None:
            return {"seconds_left": None, "seconds_left_in_steps": None}
        return {"seconds_left": sum(left), "seconds_left_in_steps": left.steps}
