"""The base class of callbacks: objects whose methods a training calls."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.core.progress import HasTotalSteps

Record = dict[str, Any]
"""What happened, by name."""


@dataclass(frozen=True)
class TrainingInfo:
    """A training that begins, or goes on from a checkpoint."""

    run: Path
    """The folder of the run."""
    step: int
    """The number of steps that are done."""
    model: Any
    plan: HasTotalSteps | None = None
    """The plan with the number of all steps; None until a budget in time is converted."""
    damaged: tuple[str, ...] = ()
    """A line about each checkpoint that can't be used, with the reason."""


class StopTraining(Exception):
    """Raised by a callback to end the training. The run is then finished, as if its budget were spent."""


class Callback:
    """The base class of callbacks. Its methods do nothing; a subclass overrides those that it needs.

    A training calls them in this order: `on_start`, then for each step `on_step` (or `on_skipped_step`),
    after some steps `on_evaluation`, `on_sample` and `on_checkpoint`, at last `on_test` and `on_end`.
    Callbacks are called in the order of their list. An exception in one ends the training, after a
    checkpoint is saved; `StopTraining` finishes the training. A callback changes no number of the training
    unless it changes the model.
    """

    def on_start(self, info: TrainingInfo) -> None:
        """Called before the first step of this process."""

    def on_plan(self, plan: HasTotalSteps) -> None:
        """Called when the number of steps is known: at the start, or later for a budget in time."""

    def on_step(self, record: Record) -> None:
        """Called after an update of the weights, with its line in metrics.jsonl and `seconds_left`.

        `seconds_left` is the estimated time until the end of the training, of which `seconds_left_in_steps`
        are steps; both are None before the first step is timed.
        """

    def on_skipped_step(self, record: Record) -> None:
        """Called after a step that changed nothing, since a number was not finite.

        `record["culprit"]` names the first such number.
        """

    def on_evaluating(self, index: int, total: int) -> None:
        """Called before batch `index` of `total` validation batches."""

    def on_evaluation(self, record: Record) -> None:
        """Called after an evaluation, with its line in metrics.jsonl and `best_step`.

        `best_step` is the step of the lowest loss so far; None if the run keeps its last weights.
        """

    def on_sample(self, step: int, text: str) -> None:
        """Called with a text that the model has generated."""

    def on_checkpoint(self, step: int, path: Path) -> None:
        """Called after the checkpoint at `path` is written."""

    def on_test(self, record: Record) -> None:
        """Called with the scores after the training, if the run has data to test it on."""

    def on_end(self, record: Record) -> None:
        """Called once at the end of training in this process, however it ends.

        `record` has `step`, `seconds`, `reason`, `best_step` and `best_loss`. The reason is `budget`,
        `patience` or `callback` if the training is finished, `stopped` if it was interrupted, else `failed`.
        """
