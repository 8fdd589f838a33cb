"""A larger budget for a run that was trained: the plan is written anew, and the earlier plans are kept."""

import math

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.store import checkpoint
from foveal.store.run import RunFolder, run_lock
from foveal.training.plan import Budget, make_plan, parse_budget
from foveal.training.snapshot import TrainingCounters, read_counters


def extend_budget(run: RunFolder, text: str, per_epoch: int, log: Log) -> None:
    """Extend the budget of a run: `+10m` adds to the end of its training, `20m` is a new total.

    The new plan begins at the newest checkpoint. Its learning rate is that of a training with the new total:
    where the old plan had let the rate fall too early, the rate rises again at once. A budget in time is
    converted at the mean pace of the run so far. `per_epoch` is the number of micro-batches in an epoch.

    Raises: UserError: the budget has another form, is no larger than what is trained, or nothing is trained.
    """
    budget = parse_budget(text.removeprefix("+"))
    with run_lock(run):
        newest, _ = checkpoint.load_latest(run.checkpoints)
        counters = TrainingCounters() if newest is None else read_counters(newest)
        if not counters.step:
            raise UserError(
                f"{run.path}: no step is saved yet, so the budget can't be extended: foveal resume {run.path}"
            )
        steps = _steps(budget, counters, per_epoch, run.config.training.grad_accumulation)
        plans, step = run.read_plans(), counters.step
        total = math.ceil((_planned_end(run, counters) if text.startswith("+") else 0) + steps - 1e-9)
        if total <= step:
            raise UserError(
                f"--budget {text}: {run.path} is trained for {step:,} steps already: give a larger budget, "
                "or what to add, such as +10m"
            )
        plan = make_plan(total, run.config.schedule, step)
        run.write_plans(plans.extended(plan, text))
        run.curves.unlink(missing_ok=True)  # a run without curves has its report to come
    pace = f", at {counters.seconds / step:.3g} s a step" if budget.unit == "seconds" else ""
    before = "" if plans.newest is None else f" in place of {plans.newest.total_steps:,}"
    falls = f"; the learning rate falls from step {plan.decay_start:,}" if plan.decay_start < total else ""
    log(f"budget {text}: {total:,} steps{before}{pace}; goes on at step {step:,}{falls}")


def _steps(budget: Budget, counters: TrainingCounters, per_epoch: int, accumulation: int) -> float:
    """Return a budget as a number of steps, at the mean pace and size of the run's steps."""
    if budget.unit == "epochs":
        return budget.amount * per_epoch / accumulation
    done = {"steps": counters.step, "tokens": max(1, counters.tokens), "seconds": counters.seconds}
    return budget.amount * counters.step / done[budget.unit]


def _planned_end(run: RunFolder, counters: TrainingCounters) -> float:
    """Return the step at which the training ends, or ended."""
    plan, budget = run.read_plans().newest, parse_budget(run.config.training.budget)
    if counters.finish_reason:
        return float(counters.step)
    if plan is not None:
        return float(plan.total_steps)
    return max(counters.step, _steps(budget, counters, 1, 1))  # a budget in time, the only one without a plan
