"""The learning rate as a function of the step and a plan, and the conversion of a budget to a plan.

The learning rate depends only on the step and the plan, so a resumed run repeats it exactly. A budget in
steps, tokens or epochs is converted at once. A budget in time is converted at the last step before the
learning rate depends on the plan. Until then, during warm-up and constant rate, the steps are timed.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from foveal.config import ScheduleConfig
from foveal.core.errors import UserError
from foveal.store.plan import Plan

ONE_CYCLE_START = 1 / 25
"""Fraction of the peak learning rate at which one-cycle begins."""
DEFAULT_EVALUATIONS = 12
FIRST_EVALUATION = 16
CALIBRATION_STEPS = 10

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


def budget_to_steps(budget: Budget, per_epoch: int, grad_accumulation: int, tokens_per_step: int) -> int:
    """Return the steps of a budget in steps, epochs or tokens (with the token count of the first step)."""
    steps_per_unit = {"steps": 1.0, "epochs": per_epoch / grad_accumulation, "tokens": 1 / tokens_per_step}
    if budget.amount == 0:
        return 0
    return max(1, math.ceil(budget.amount * steps_per_unit[budget.unit] - 1e-9))


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
        constant_fractions = {"constant": 1.0, "inverse-sqrt": 1.0, "one-cycle": 0.0}
        fraction = constant_fractions.get(self.schedule.name, self.schedule.decay_start)
        constant_part_done = (
            step >= max(self.schedule.warmup_steps, CALIBRATION_STEPS) and elapsed >= fraction * self.seconds
        )
        if not constant_part_done and (elapsed < self.seconds or step == 0):
            return None
        seconds_left = max(0.0, self.seconds - elapsed)
        return make_plan(step + round(seconds_left / self._step_time(step, elapsed)), self.schedule, step)

    def _step_time(self, step: int, elapsed: float) -> float:
        """Return the mean time of the later half of the timed steps, without the cost of starting up."""
        if len(self.step_times) < CALIBRATION_STEPS:
            return elapsed / step
        recent = self.step_times[len(self.step_times) // 2 :]
        return sum(recent) / len(recent)


def evaluation_due(step: int, plan: Plan | None, every: int) -> bool:
    """Return whether to evaluate after `step` steps: after every `every` steps, and after the last step.

    If `every` is 0, there are about twelve evaluations. Until a time budget is converted to a plan, the end
    is unknown, and evaluations are at powers of two from 16. The answer for a step before `plan.decided_at`
    does not change when the plan is made.
    """
    if step == 0 or (plan and step >= plan.total_steps):
        return step > 0
    if every:
        return step % every == 0
    if plan is None or step <= plan.decided_at:
        return step >= FIRST_EVALUATION and step & (step - 1) == 0
    steps_left = plan.total_steps - plan.decided_at
    parts = max(1, round(DEFAULT_EVALUATIONS * steps_left / plan.total_steps))
    done = step - plan.decided_at
    return done * parts // steps_left > (done - 1) * parts // steps_left
