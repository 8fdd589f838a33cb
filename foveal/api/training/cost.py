"""The cost of a training, known before the first step."""

from dataclasses import dataclass
from typing import Any

from foveal.core.allocator import resident_memory
from foveal.core.runtime import peak_memory, release_freed_memory
from foveal.data.core.prepared_data import PreparedData
from foveal.tasks.base import Task
from foveal.training.dry_run import DryRunResult, dry_run
from foveal.training.plan import (
    FORWARDS_PER_STEP,
    EvaluationSchedule,
    StepTimer,
    budget_to_steps,
    make_plan,
    parse_budget,
)
from foveal.training.protocols import Batch, Batches
from foveal.ui.console import format_bytes, format_duration

EQUAL_GROWTH = 1.15
"""The memory that steps take for a moment, as a multiple of a first step's: freed memory is kept for the next
step, and does not always fit."""
LATER_BYTES = 60_000_000
"""Memory of the code that is loaded after the first step: of previews, optimizers and reports."""
MOST_SHAPES = 16
"""Shapes of batches at most whose kernels count: what is kept was seen to grow for 15 to 20 steps only."""
BATCHES_COMPARED = 4
"""Batches whose sizes are compared."""


@dataclass(frozen=True)
class StepsCost:
    """The time of training steps, estimated from a step and its first loss."""

    first_loss: float
    step_seconds: float
    tokens_per_step: int
    steps_per_epoch: float
    total_steps: int
    evaluations: int
    evaluation_seconds: float
    """Seconds of all evaluations, without the test."""

    @property
    def seconds(self) -> float:
        """Seconds of the training with its evaluations, without the test."""
        return self.total_steps * self.step_seconds + self.evaluation_seconds

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


@dataclass(frozen=True)
class StepsMemory:
    """The memory of training steps, in bytes."""

    kept: int
    """What the process keeps after a first step."""
    passing: int
    """What a step takes beside for a moment."""
    per_shape: int
    """What the process keeps for each shape of batches: kernels that are made for the shape."""

    def peak(self, batches: int, baseline: int) -> int:
        """Return the peak in so many batches, or in the fit of a baseline that takes `baseline` for a
        moment."""
        kept = self.kept + LATER_BYTES + self.per_shape * min(batches, MOST_SHAPES)
        return kept + max(self.passing, baseline)


def measure_cost(
    task: Task, prepared: PreparedData[Any, Any], batches: Batches, valid: Batches | None
) -> TrainingCost:
    """Return the cost of training the task's model on `batches` of the data, for the task's budget, with
    evaluations on `valid`."""
    config = task.config
    accumulation, budget = config.training.grad_accumulation, parse_budget(config.training.budget)
    baseline = 0
    if prepared.held_out is not None and config.training.final_test:
        baseline = task.baseline_memory(prepared.train, prepared.held_out)
    if budget.amount == 0:
        release_freed_memory()
        return TrainingCost(max(peak_memory(), resident_memory() + LATER_BYTES + baseline), None)
    first_batch = batches.batch(0, 0)
    first, memory = measure_steps(task, first_batch, other_shape(batches))
    step = first.seconds * accumulation + first.update_seconds
    tokens = first_batch.tokens * accumulation
    if budget.unit == "seconds":
        plan = StepTimer(budget.amount, config.schedule).expected(0, 0.0, step)
    else:
        total_steps = budget_to_steps(budget, batches.per_epoch, accumulation, tokens)
        plan = make_plan(total_steps, config.schedule)
    evaluations, evaluation = 0, 0.0
    if valid is not None:
        schedule = EvaluationSchedule(config.training.evaluate_every, valid.per_epoch, accumulation)
        forward = first.seconds / FORWARDS_PER_STEP * valid.batch(0, 0).tokens / max(1, first_batch.tokens)
        evaluations = schedule.left(0, plan)
        evaluation = evaluations * valid.per_epoch * forward
    per_epoch = batches.per_epoch / accumulation
    steps = StepsCost(first.loss, step, tokens, per_epoch, plan.total_steps, evaluations, evaluation)
    if next(task.model.parameters()).is_cuda:
        return TrainingCost(first.memory_bytes, steps)
    peak = memory.peak(plan.total_steps * accumulation, baseline)
    return TrainingCost(max(first.memory_bytes, peak), steps)


def measure_steps(task: Task, batch: Batch, other: Batch | None) -> tuple[DryRunResult, StepsMemory]:
    """Run a step on a batch, and one on a batch of another shape if there is any. Return the cost of the
    first, and the memory of both."""

    def run(batch: Batch) -> tuple[DryRunResult, int]:
        result = dry_run(task.model, task.objective(), batch, task.config)
        release_freed_memory()
        return result, resident_memory()

    first, kept = run(batch)
    passing = first.resident_bytes - kept
    if other is None:
        return first, StepsMemory(kept, round(EQUAL_GROWTH * passing), 0)
    second, kept_after = run(other)
    passing = max(passing, second.resident_bytes - kept)
    return first, StepsMemory(kept, passing, max(0, kept_after - kept))


def other_shape(batches: Batches) -> Batch | None:
    """Return a batch of another shape than the first; None if the batches are of one size. The last batch may
    always be smaller."""
    compared = range(min(BATCHES_COMPARED, batches.per_epoch))
    sizes = {batches.batch(0, index).tokens for index in compared}
    return batches.batch(0, batches.per_epoch // 2) if len(sizes) > 2 else None
