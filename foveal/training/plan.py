"""The learning rate as a function of the step and a plan, and the conversion of a budget to a plan.

The learning rate depends only on the step and the plan, so a resumed run repeats it exactly. A budget in
steps, tokens or epochs is converted at once. A budget in time is converted at the last step before the
learning rate depends on the plan. Until then, during warm-up and constant rate, the steps are timed.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from foveal.config import Config, ScheduleConfig
from foveal.core.errors import UserError
from foveal.store.plan import Plan
from foveal.training.protocols import Batches

ONE_CYCLE_START = 1 / 25
"""Fraction of the peak learning rate at which one-cycle begins."""
DEFAULT_EVALUATIONS = 12
FIRST_EVALUATION = 16
CALIBRATION_STEPS = 10
CALIBRATION_FRACTION = 0.1
"""Fraction of a budget in seconds after which fewer than `CALIBRATION_STEPS` steps have to do."""
MAX_WARMUP_FRACTION = 0.1
"""Largest fraction of the steps that are warm-up, unless the user sets the number."""
FORWARDS_PER_STEP = 3
"""A step takes about as long as three forward passes over its batch."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_SCALE = {"": 1.0, "k": 1e3, "M": 1e6}


@dataclass(frozen=True)
class Budget:
    """The amount of training: an `amount` of `seconds`, `steps`, `epochs` or `tokens`."""

    amount: float
    unit: Literal["seconds", "steps", "epochs", "tokens"]


def parse_budget(text: str) -> Budget:
    """Parse `90s`, `3m`, `2h`, `2000steps`, `5epochs` or `10Mtokens` (k = 1,000, M = 1,000,000).

    `0steps` trains nothing: the weights stay as they start.

    Raises: UserError: the budget has another form.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:(s|m|h)|([kM]?)(step|epoch|token)s?)", text.strip())
    amount = float(match[1]) if match else 0.0
    nothing = match is not None and amount == 0 and match[4] == "step"
    if match is None or not (nothing or 0 < amount < 1e12):
        amounts = "90s, 3m, 2h, 2000steps, 5epochs or 10Mtokens"
        raise UserError(f"budget '{text}': expected an amount above 0, such as {amounts}")
    if match[2]:
        return Budget(amount * _UNITS[match[2]], "seconds")
    units: dict[str, Literal["steps", "epochs", "tokens"]]
    units = {"step": "steps", "epoch": "epochs", "token": "tokens"}
    return Budget(amount * _SCALE[match[3]], units[match[4]])


def lr_at(step: int, plan: Plan | None, schedule: ScheduleConfig, peak_lr: float) -> float:
    """Return the learning rate of update number `step` (from 0): linear warm-up, constant, then decay."""
    if schedule.name == "one-cycle":
        return peak_lr * _one_cycle(step, plan, schedule.final_lr_fraction)
    constant_lr = peak_lr * min(1.0, (step + 1) / max(1, schedule.warmup_steps))
    if schedule.name == "inverse-sqrt":  # Vaswani et al. 2017, 5.3: the peak is at the end of the warm-up
        return min(constant_lr, peak_lr * math.sqrt(max(1, schedule.warmup_steps) / (step + 1)))
    if plan is None or step < plan.decay_start:
        return constant_lr
    fraction = (step - plan.decay_start) / (plan.total_steps - plan.decay_start)
    remaining = 1 - fraction if schedule.name == "linear" else _cosine(fraction)
    return constant_lr * (schedule.final_lr_fraction + (1 - schedule.final_lr_fraction) * remaining)


def _one_cycle(step: int, plan: Plan | None, final: float) -> float:
    """Return the fraction of the peak learning rate in the one-cycle schedule (Smith and Topin 2018).

    The fraction rises from a low value to 1, and falls to `final` at the last step, both along half a cosine.
    Until there is a plan, the fraction is at its lowest.
    """
    if plan is None or step < plan.decided_at:
        return ONE_CYCLE_START
    peak, last = plan.decay_start - 1, plan.total_steps - 1
    if step < peak:
        return 1 - (1 - ONE_CYCLE_START) * _cosine((step - plan.decided_at) / (peak - plan.decided_at))
    return final + (1 - final) * _cosine((step - peak) / max(1, last - peak))


def _cosine(fraction: float) -> float:
    """Return half a cosine that falls from 1 (at `fraction` 0) to 0 (at 1)."""
    return (1 + math.cos(math.pi * fraction)) / 2


def make_plan(total_steps: int, schedule: ScheduleConfig, decided_at: int = 0) -> Plan:
    """Return the plan of `total_steps` steps that is decided at step `decided_at`.

    Before `decided_at`, the learning rate is only warmed up and constant. The one-cycle schedule takes place
    in the remaining steps, and rises for at least one step.
    """
    if schedule.name == "one-cycle":
        rising = round(schedule.decay_start * (total_steps - decided_at))
        return Plan(total_steps, min(total_steps, decided_at + max(1, rising)), decided_at)
    independent = schedule.name in ("constant", "inverse-sqrt")
    start = total_steps if independent else round(schedule.decay_start * total_steps)
    return Plan(total_steps, min(total_steps, max(start, schedule.warmup_steps, decided_at)), decided_at)


def limit_warmup(schedule: ScheduleConfig, total_steps: int) -> ScheduleConfig:
    """Return the schedule with a warm-up of at most a tenth of `total_steps`."""
    longest = int(MAX_WARMUP_FRACTION * total_steps)
    return schedule.model_copy(update={"warmup_steps": min(schedule.warmup_steps, longest)})


def budget_to_steps(budget: Budget, per_epoch: int, grad_accumulation: int, tokens_per_step: int) -> int:
    """Return the steps of a budget in steps, epochs or tokens (with the token count of the first step)."""
    steps_per_unit = 1.0
    if budget.unit == "epochs":
        steps_per_unit = per_epoch / grad_accumulation
    elif budget.unit == "tokens":
        steps_per_unit = 1 / tokens_per_step
    if budget.amount == 0:
        return 0
    return max(1, math.ceil(budget.amount * steps_per_unit - 1e-9))


@dataclass
class StepTimer:
    """Times the steps of a budget in seconds until it has to be converted to a plan."""

    seconds: float
    schedule: ScheduleConfig
    step_times: list[float] = field(default_factory=list)

    def plan(self, step: int, elapsed: float) -> Plan | None:
        """Return the plan if the learning rate is about to depend on the plan, else None.

        `step` steps took `elapsed` seconds.
        """
        timed = step >= CALIBRATION_STEPS or elapsed >= CALIBRATION_FRACTION * self.seconds
        # After a resume, the pace of the new process decides, so that its machine's speed counts.
        warmed_up = timed and len(self.step_times) >= 2 and step >= self.schedule.warmup_steps
        constant_part_done = warmed_up and elapsed >= self._constant_seconds
        if not constant_part_done and (elapsed < self.seconds or step == 0):
            return None
        seconds_left = max(0.0, self.seconds - elapsed)
        return make_plan(step + round(seconds_left / self._step_time(step, elapsed)), self.schedule, step)

    def expected(self, step: int, elapsed: float, step_seconds: float) -> Plan:
        """Return the plan that `plan` will return if every further step takes `step_seconds`."""
        total_steps = max(1, step, step + round((self.seconds - elapsed) / step_seconds))
        timed = min(CALIBRATION_STEPS, math.ceil(CALIBRATION_FRACTION * total_steps))
        constant = step + math.ceil((self._constant_seconds - elapsed) / step_seconds)
        decided_at = max(step, timed, constant, self.schedule.warmup_steps)
        return make_plan(total_steps, self.schedule, min(decided_at, total_steps))

    @property
    def _constant_seconds(self) -> float:
        """Seconds after which the learning rate begins to depend on the plan."""
        fractions = {"constant": 1.0, "inverse-sqrt": 1.0, "one-cycle": 0.0}
        return fractions.get(self.schedule.name, self.schedule.decay_start) * self.seconds

    def _step_time(self, step: int, elapsed: float) -> float:
        """Return the mean time of the later half of the timed steps, without the cost of starting up."""
        if len(self.step_times) < 2:
            return elapsed / step
        recent = self.step_times[len(self.step_times) // 2 :]
        return sum(recent) / len(recent)


def max_evaluations(eval_batches: int, train_batches: int) -> int:
    """Return the number of evaluations over `eval_batches` in a training over `train_batches`: twelve, or
    fewer if twelve would take longer than the training."""
    return max(1, min(DEFAULT_EVALUATIONS, FORWARDS_PER_STEP * train_batches // max(1, eval_batches)))


def plan_of_budget(budget: Budget, batches: Batches, config: Config) -> Plan | None:
    """Return the plan of a budget in steps, epochs or tokens."""
    accumulation = config.training.grad_accumulation
    tokens = batches.batch(0, 0).tokens * accumulation if budget.unit == "tokens" else 1
    return make_plan(budget_to_steps(budget, batches.per_epoch, accumulation, tokens), config.schedule)


@dataclass(frozen=True)
class EvaluationSchedule:
    """The steps after which a model is evaluated: after every `every` steps, and after the last step.

    If `every` is 0, there are about twelve evaluations, or fewer if the validation data, of `eval_batches`,
    are large for the number of steps, of `grad_accumulation` batches. Until a time budget is converted to a
    plan, the end is unknown, and evaluations are at powers of two from 16. The answer for a step before
    `plan.decided_at` does not change when the plan is made.
    """

    every: int
    eval_batches: int = 0
    grad_accumulation: int = 1

    def due(self, step: int, plan: Plan | None) -> bool:
        """Return whether to evaluate after `step` steps."""
        if step == 0 or (plan and step >= plan.total_steps):
            return step > 0
        if self.every:
            return step % self.every == 0
        if plan is None or step <= plan.decided_at:
            return step & (step - 1) == 0 and step >= self._first()
        return self._done(step, plan) > self._done(step - 1, plan)

    def left(self, step: int, plan: Plan) -> int:
        """Return the number of evaluations after step `step`."""
        if step >= plan.total_steps:
            return 0
        if self.every:
            return -(-plan.total_steps // self.every) - step // self.every
        powers = (1 << exponent for exponent in range(plan.decided_at.bit_length()))
        early_end = min(plan.decided_at, plan.total_steps - 1)
        early = sum(max(step + 1, self._first()) <= power <= early_end for power in powers)
        late = max(1, self._done(plan.total_steps, plan) - self._done(max(step, plan.decided_at), plan))
        return min(early + late, plan.total_steps - step)

    def _first(self) -> int:
        """Return the earliest step with an evaluation that takes at most twice as long as the steps before
        it."""
        return max(FIRST_EVALUATION, self.eval_batches // (2 * FORWARDS_PER_STEP * self.grad_accumulation))

    def _done(self, step: int, plan: Plan) -> int:
        """Return the number of evaluations between the decision and step `step`."""
        steps_left = plan.total_steps - plan.decided_at
        evaluations = max_evaluations(self.eval_batches, plan.total_steps * self.grad_accumulation)
        parts = max(1, round(evaluations * steps_left / plan.total_steps))
        return (step - plan.decided_at) * parts // max(1, steps_left)
