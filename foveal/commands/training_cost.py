"""The cost of a training, known before the first step."""

from dataclasses import dataclass
from typing import Any

from foveal.core.runtime import peak_memory, resident_memory
from foveal.data.core.prepared_data import PreparedData
from foveal.tasks.base import Task
from foveal.training.dry_run import dry_run
from foveal.training.plan import (
    FORWARDS_PER_STEP,
    EvaluationSchedule,
    StepTimer,
    budget_to_steps,
    make_plan,
    parse_budget,
)
from foveal.training.protocols import Batches
from foveal.ui.console import format_bytes, format_duration

EQUAL_GROWTH, VARYING_GROWTH = 1.5, 2.0
"""The memory that all steps and evaluations take, as a multiple of a first step's, on batches of one size and
of various sizes: freed memory is kept for the next step, and does not always fit."""
BATCHES_COMPARED = 4


@dataclass(frozen=True)
class StepsCost:
    """The time of training steps, estimated from a step and its first loss."""

    first_loss: float
    step_seconds: float
    tokens_per_step: int
    steps_per_epoch: float
    total_steps: int
    evaluation_seconds: float
    """Seconds of all evaluations, without the test."""

    def summary(self, unit: str) -> str:
        """Return the time in words; `unit` is the unit of a step's inputs."""
        training = self.total_steps * self.step_seconds
        return (
            f"{1000 * self.step_seconds:.0f} ms a step of {self.tokens_per_step:,} {unit}; "
            f"{format_duration(self.steps_per_epoch * self.step_seconds)} an epoch; "
            f"{format_duration(training)} of training and {format_duration(self.evaluation_seconds)} of "
            "evaluations, before the test"
        )


@dataclass(frozen=True)
class TrainingCost:
    """Memory and time of a training. `steps` is None for a training without steps."""

    memory_bytes: int
    steps: StepsCost | None

    def summary(self, unit: str) -> str:
        """Return memory and time in words; `unit` is the unit of a step's inputs."""
        steps = "no training steps" if self.steps is None else self.steps.summary(unit)
        return f"about {format_bytes(self.memory_bytes)} of memory; {steps}"


def measure_cost(task: Task, prepared: PreparedData[Any, Any], batches: Batches) -> TrainingCost:
    """Return the cost of training the task's model on batches of the data, for the task's budget."""
    config = task.config
    accumulation, budget = config.training.grad_accumulation, parse_budget(config.training.budget)
    baseline = 0
    if prepared.held_out is not None and config.training.final_test:
        baseline = task.baseline_memory(prepared.train, prepared.held_out)
    if budget.amount == 0:
        return TrainingCost(max(peak_memory(), resident_memory() + baseline), None)
    first_batch = batches.batch(0, 0)
    first = dry_run(task.model, task.objective(), first_batch, config, memory_growth(batches))
    step = first.seconds * accumulation + first.update_seconds
    tokens = first_batch.tokens * accumulation
    if budget.unit == "seconds":
        plan = StepTimer(budget.amount, config.schedule).expected(0, 0.0, step)
    else:
        total_steps = budget_to_steps(budget, batches.per_epoch, accumulation, tokens)
        plan = make_plan(total_steps, config.schedule)
    evaluation = 0.0
    if prepared.valid is not None:
        eval_batches = task.eval_batches(prepared.valid).per_epoch
        schedule = EvaluationSchedule(config.training.evaluate_every, eval_batches, accumulation)
        evaluations = schedule.left(0, plan)
        evaluation = evaluations * eval_batches * first.seconds / FORWARDS_PER_STEP
    per_epoch = batches.per_epoch / accumulation
    steps = StepsCost(first.loss, step, tokens, per_epoch, plan.total_steps, evaluation)
    return TrainingCost(first.memory_bytes + baseline, steps)


def memory_growth(batches: Batches) -> float:
    """Return the growth of memory from the first step to later ones. The last batch may always be smaller."""
    compared = range(min(BATCHES_COMPARED, batches.per_epoch))
    sizes = {batches.batch(0, index).tokens for index in compared}
    return VARYING_GROWTH if len(sizes) > 2 else EQUAL_GROWTH
