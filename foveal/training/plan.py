"""The learning rate as a function of the step and a plan, and how a budget becomes a plan.

Nothing but the step and the plan decides the rate, so a resumed run repeats it exactly. A budget in
steps, tokens or epochs is a plan at once. A budget in time becomes one at the last moment at which the
rate does not depend on it: while the rate is warmed up and held, the steps are timed.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from foveal.config import ScheduleConfig
from foveal.core.errors import UserError

ONE_CYCLE_START = 1 / 25
"""Of the highest rate: where one cycle begins."""
DEFAULT_EVALUATIONS = 12
FIRST_EVALUATION = 16
CALIBRATION_STEPS = 10

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_SCALE = {"": 1.0, "k": 1e3, "M": 1e6}


@dataclass(frozen=True)
class Budget:
    """How much training: an amount of `seconds`, `steps`, `epochs` or `tokens`."""

    amount: float
    unit: Literal["seconds", "steps", "epochs", "tokens"]


@dataclass(frozen=True)
class Plan:
    """The rate falls from step `decay_start` to `total_steps`; the plan was made at step `decided_at`.

    One cycle begins at `decided_at`, and the rate before `decay_start` is its highest.
    """

    total_steps: int
    decay_start: int
    decided_at: int = field(default=0, metadata={"key": "decided"})


def parse_budget(text: str) -> Budget:
    """`90s`, `3m`, `2h`, `2000steps`, `5epochs`, `10Mtokens` (k = 1,000, M = 1,000,000)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:(s|m|h)|([kM]?)(step|epoch|token)s?)", text.strip())
    amount = float(match[1]) if match else 0.0
    if match is None or not 0 < amount < 1e12:
        amounts = "90s, 3m, 2h, 2000steps, 5epochs or 10Mtokens"
        raise UserError(f"budget '{text}': expected an amount above 0, such as {amounts}")
    if match[2]:
        return Budget(amount * _UNITS[match[2]], "seconds")
    units: dict[str, Literal["steps", "epochs", "tokens"]]
    units = {"step": "steps", "epoch": "epochs", "token": "tokens"}
    return Budget(amount * _SCALE[match[3]], units[match[4]])


def lr_at(step: int, plan: Plan | None, schedule: ScheduleConfig, peak_lr: float) -> float:
    """The rate of update number `step` (from 0): warmed up linearly, held, then falling to the end."""
    if schedule.name == "one-cycle":
        return peak_lr * _one_cycle(step, plan, schedule.final_lr_fraction)
    held = peak_lr * min(1.0, (step + 1) / max(1, schedule.warmup_steps))
    if schedule.name == "inverse-sqrt":  # Vaswani et al. 2017, 5.3: its peak is where the warm-up ends
        return min(held, peak_lr * math.sqrt(max(1, schedule.warmup_steps) / (step + 1)))
    if plan is None or step < plan.decay_start:
        return held
    share = (step - plan.decay_start) / (plan.total_steps - plan.decay_start)
    fall = 1 - share if schedule.name == "linear" else _cosine(share)
    return held * (schedule.final_lr_fraction + (1 - schedule.final_lr_fraction) * fall)


def _one_cycle(step: int, plan: Plan | None, final: float) -> float:
    """From a low rate to the highest, 1, and from there to `final` at the last step (Smith and Topin 2018),
    both along half a cosine; lowest until there is a plan."""
    if plan is None or step < plan.decided_at:
        return ONE_CYCLE_START
    peak, last = plan.decay_start - 1, plan.total_steps - 1
    if step < peak:
        return 1 - (1 - ONE_CYCLE_START) * _cosine((step - plan.decided_at) / (peak - plan.decided_at))
    return final + (1 - final) * _cosine((step - peak) / max(1, last - peak))


def _cosine(share: float) -> float:
    """From 1 to 0."""
    return (1 + math.cos(math.pi * share)) / 2


def make_plan(total_steps: int, schedule: ScheduleConfig, decided_at: int = 0) -> Plan:
    """The plan of `total_steps` steps whose rate before step `decided_at` is only warmed up and held.

    One cycle is of the steps that are left then, and rises for at least one of them.
    """
    if schedule.name == "one-cycle":
        rising = round(schedule.decay_start * (total_steps - decided_at))
        return Plan(total_steps, min(total_steps, decided_at + max(1, rising)), decided_at)
    independent = schedule.name in ("constant", "inverse-sqrt")
    start = total_steps if independent else round(schedule.decay_start * total_steps)
    return Plan(total_steps, min(total_steps, max(start, schedule.warmup_steps, decided_at)), decided_at)


def budget_to_steps(budget: Budget, per_epoch: int, grad_accumulation: int, tokens_per_step: int) -> int:
    """The steps of a budget in steps, epochs or tokens (at the first step's number of tokens)."""
    steps_per_unit = {"steps": 1.0, "epochs": per_epoch / grad_accumulation, "tokens": 1 / tokens_per_step}
    return max(1, math.ceil(budget.amount * steps_per_unit[budget.unit] - 1e-9))


@dataclass
class StepTimer:
    """Times the steps of a budget in seconds until it has to become a plan."""

    seconds: float
    schedule: ScheduleConfig
    step_times: list[float] = field(default_factory=list)

    def plan(self, step: int, elapsed: float) -> Plan | None:
        """The plan, if after `step` steps in `elapsed` seconds the rate is about to depend on it."""
        free = {"constant": 1.0, "inverse-sqrt": 1.0, "one-cycle": 0.0}
        share = free.get(self.schedule.name, self.schedule.decay_start)
        settled = (
            step >= max(self.schedule.warmup_steps, CALIBRATION_STEPS) and elapsed >= share * self.seconds
        )
        if not settled and (elapsed < self.seconds or step == 0):
            return None
        left = max(0.0, self.seconds - elapsed)
        return make_plan(step + round(left / self._step_time(step, elapsed)), self.schedule, step)

    def _step_time(self, step: int, elapsed: float) -> float:
        """Mean over the later half of the timed steps: what starting up costs is over by then."""
        if len(self.step_times) < CALIBRATION_STEPS:
            return elapsed / step
        recent = self.step_times[len(self.step_times) // 2 :]
        return sum(recent) / len(recent)


def evaluation_due(step: int, plan: Plan | None, every: int) -> bool:
    """Whether to evaluate after `step` steps: each `every`, or about twelve times in all (0), and last.

    Until a budget of time is a plan the end is not known: then at powers of two from 16. The answer for a
    step before `plan.decided_at` does not change when the plan is made.
    """
    if step == 0 or (plan and step >= plan.total_steps):
        return step > 0
    if every:
        return step % every == 0
    if plan is None or step <= plan.decided_at:
        return step >= FIRST_EVALUATION and step & (step - 1) == 0
    left = plan.total_steps - plan.decided_at
    parts = max(1, round(DEFAULT_EVALUATIONS * left / plan.total_steps))
    done = step - plan.decided_at
    return done * parts // left > (done - 1) * parts // left
