"""The cost of a training, known before the first step."""

from dataclasses import dataclass, replace
from typing import Any

from foveal.api.training.batch_sample import BatchSample
from foveal.api.training.fitting import check_memory
from foveal.core.allocator import resident_memory
from foveal.core.runtime import peak_memory, release_freed_memory
from foveal.data.core.prepared_data import PreparedData
from foveal.tasks.base import Task
from foveal.training.dry_run import DryRunResult, dry_run, forward_seconds
from foveal.training.plan import (
    EvaluationSchedule,
    StepTimer,
    budget_to_steps,
    make_plan,
    parse_budget,
)
from foveal.training.protocols import Batch, Batches
from foveal.ui.console import format_bytes, format_duration

STEP_GROWTH, SHAPE_GROWTH = 1.25, 0.06
"""The memory that steps take for a moment, as a multiple of a first step's, and what each shape of batches
adds at least: freed memory is kept for the next step, and does not always fit. Measured on eleven presets."""
LATER_BYTES = 30_000_000
"""Memory of the code that is loaded after the first step: of previews, optimizers and reports."""
MOST_SHAPES = 24
"""Shapes of batches at most whose kernels count: oneDNN keeps a limited number of kernels."""

SLOW_SECONDS, FORWARDS_PER_STEP = 3.0, 3
"""Seconds of a step after which no evaluation is tried; the forward passes that take as long as a step."""


@dataclass(frozen=True)
class StepsCost:
    """The time of training steps, estimated from a step and its first loss."""

    first_loss: float
    step_seconds: float
    tokens_per_step: int
    """Those of a step of mean size."""
    steps_per_epoch: float
    total_steps: int
    evaluations: int
    evaluation_seconds: float
    """Seconds of an evaluation; 0 if there is none."""

    @property
    def epoch_seconds(self) -> float:
        """Seconds of the steps of an epoch, without evaluations."""
        return self.steps_per_epoch * self.step_seconds

    @property
    def evaluating_seconds(self) -> float:
        """Seconds of all evaluations, without the test."""
        return self.evaluations * self.evaluation_seconds

    @property
    def seconds(self) -> float:
        """Seconds of the training with its evaluations, without the test."""
        return self.total_steps * self.step_seconds + self.evaluating_seconds

    def summary(self, unit: str) -> str:
        """Return the time in words; `unit` is the unit of a step's inputs."""
        training = self.total_steps * self.step_seconds
        return (
            f"{1000 * self.step_seconds:.0f} ms a step of {self.tokens_per_step:,} {unit}; "
            f"{format_duration(self.epoch_seconds)} an epoch; "
            f"{format_duration(training)} of training and {format_duration(self.evaluating_seconds)} of "
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
    evaluations on `valid`.

    Raises: UserError: a step does not fit into the free memory; the error names the batch that does.
    """
    config = task.config
    accumulation, budget = config.training.grad_accumulation, parse_budget(config.training.budget)
    baseline = 0
    if prepared.held_out is not None and config.training.final_test:
        baseline = task.baseline_memory(prepared.train, prepared.held_out)
    if budget.amount == 0:
        if _is_on_gpu(task):
            return TrainingCost(peak_memory(), None)
        release_freed_memory()
        return TrainingCost(max(peak_memory(), resident_memory() + LATER_BYTES + baseline), None)
    sample = BatchSample.of(batches)
    check_memory(task, prepared, sample)
    first, forward_and_backward, memory = measure_steps(task, sample)
    evaluation = 0.0 if valid is None else measure_evaluation(task, valid, first)
    # With the freed memory of an evaluation, which seldom fits the tensors of a step.
    memory = replace(memory, kept=max(memory.kept, resident_memory()))
    step = (sample.seconds + forward_and_backward) * accumulation + first.update_seconds
    if budget.unit == "seconds":
        plan = StepTimer(budget.amount, config.schedule).expected(0, 0.0, step)
    else:
        tokens = sample.first.tokens * accumulation  # as the trainer takes them
        total_steps = budget_to_steps(budget, batches.per_epoch, accumulation, tokens)
        plan = make_plan(total_steps, config.schedule)
    evaluations = 0
    if valid is not None:
        schedule = EvaluationSchedule(config.training.evaluate_every, valid.per_epoch, accumulation)
        evaluations = schedule.left(0, plan)
    per_epoch = batches.per_epoch / accumulation
    tokens = round(sample.mean_tokens * accumulation)
    steps = StepsCost(first.loss, step, tokens, per_epoch, plan.total_steps, evaluations, evaluation)
    if _is_on_gpu(task):
        return TrainingCost(first.memory_bytes, steps)
    peak = memory.peak(min(batches.per_epoch, plan.total_steps * accumulation), baseline)
    return TrainingCost(max(first.memory_bytes, peak), steps)


def measure_steps(task: Task, sample: BatchSample) -> tuple[DryRunResult, float, StepsMemory]:
    """Run a step on the first batch of a sample, and one on the largest if sizes vary. Return the cost of the
    first, the seconds of forward and backward passes over a batch of mean size, and the memory of both."""

    def run(batch: Batch) -> tuple[DryRunResult, int]:
        result = dry_run(task.model, task.objective(), batch, task.config)
        release_freed_memory()
        return result, resident_memory()

    first, kept = run(sample.first)
    passing = first.resident_bytes - kept
    if sample.another is None:
        return first, first.seconds, StepsMemory(kept, round(STEP_GROWTH * passing), 0)
    second, kept_after = run(sample.another)
    passing = max(passing, second.resident_bytes - kept)
    per_shape = max(kept_after - kept, round(SHAPE_GROWTH * passing))
    of_both = sample.first.tokens + sample.another.tokens
    seconds = (first.seconds + second.seconds) * sample.mean_tokens / max(1, of_both)
    return first, seconds, StepsMemory(kept, round(STEP_GROWTH * passing), per_shape)


def measure_evaluation(task: Task, valid: Batches, step: DryRunResult) -> float:
    """Return the seconds of an evaluation on all held-out batches, by the time of the first, or by that of a
    slow training step."""
    sample = BatchSample.of(valid)
    if step.seconds > SLOW_SECONDS:
        forward = step.seconds / FORWARDS_PER_STEP
    else:
        forward = forward_seconds(task.model, task.objective(), sample.first, task.config.training.precision)
    return valid.per_epoch * (sample.seconds + forward * sample.mean_tokens / max(1, sample.first.tokens))


def _is_on_gpu(task: Task) -> bool:
    return next(task.model.parameters()).is_cuda
