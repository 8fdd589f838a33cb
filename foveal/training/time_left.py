"""The time that a training still takes, from the pace of its recent steps and evaluations."""

from collections import deque
from dataclasses import dataclass, field

from foveal.core.progress import SecondsLeft
from foveal.store.plan import Plan
from foveal.training.plan import FORWARDS_PER_STEP, Budget, EvaluationSchedule

RECENT_STEPS = 20
"""Steps whose mean time is the pace. The steps of an earlier process do not count."""


@dataclass
class TimeLeft:
    """Estimates the time left of a training with `budget`.

    `test_batches` is the number of batches that are evaluated after the training.
    """

    budget: Budget
    schedule: EvaluationSchedule
    test_batches: int = 0
    step_times: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))
    """Seconds of the last steps, all that happens between two evaluations included."""
    evaluation_seconds: float | None = None
    """Seconds of the last evaluation."""

    def estimate(self, step: int, trained_seconds: float, plan: Plan | None) -> SecondsLeft | None:
        """Return the time left after `step` steps, which took `trained_seconds`; None before the first."""
        if not self.step_times:
            return None
        pace = sum(self.step_times) / len(self.step_times)
        if plan is None:
            total_steps = step + max(0, round((self.budget.amount - trained_seconds) / pace))
            plan = Plan(total_steps, total_steps, step)
        per_batch = pace / self.schedule.grad_accumulation / FORWARDS_PER_STEP
        if self.evaluation_seconds is not None and self.schedule.eval_batches:
            per_batch = self.evaluation_seconds / self.schedule.eval_batches
        evaluations = self.schedule.left(step, plan)
        batches = evaluations * self.schedule.eval_batches + self.test_batches
        return SecondsLeft((plan.total_steps - step) * pace, batches * per_batch)
