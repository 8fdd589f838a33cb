"""Short trainings of a model from the same first weights, which are restored exactly."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from foveal.core.runtime import random_state, restore_random_state
from foveal.core.state import State
from foveal.store.sealed import copy_tensors, unique_state_dict
from foveal.tasks.base import Task
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batches
from foveal.training.step import train_step

WARMUP_FRACTION = 0.1
"""The fraction of the steps in which the learning rate rises to its constant value."""
TOO_HIGH = 3.0
"""A training that makes the loss so many times its first is stopped."""
Stop = Callable[[Sequence[float]], bool]
"""Gets the losses so far, and returns whether the training is stopped."""


class Probe:
    """Trains the model of a task for a few steps at a constant rate, and restores weights and random numbers.

    Batches and noise are those of a training: functions of the seed and the step.
    """

    def __init__(self, task: Task, batches: Batches):
        self.task, self.batches = task, batches
        self._weights = {name: weight.clone() for name, weight in unique_state_dict(task.model).items()}

    def train(self, lr: float, steps: int, stop: Stop, batch: Any = None) -> list[float]:
        """Return the loss of each step on the batches of a training, or on one `batch` again and again.

        A loss that is not finite, or several times the first, ends the training; the last loss is then
        infinite.
        """
        with self._restored():
            return self._train(lr, steps, stop, batch)

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """Return a context after which weights and random numbers are those of before, without gradients."""
        before = random_state()
        try:
            yield
        finally:
            copy_tensors(unique_state_dict(self.task.model), self._weights, "")
            self.task.model.zero_grad(set_to_none=True)
            restore_random_state(before)

    def _train(self, lr: float, steps: int, stop: Stop, batch: Any) -> list[float]:
        model, config = self.task.model, self.task.config
        objective, optimizer = self.task.objective(), Optimizer(model, config.optimizer)
        accumulation = config.training.grad_accumulation
        carries: list[State] = [None] * accumulation
        losses: list[float] = []
        for step in range(steps):
            result, new_carries = train_step(
                model,
                objective,
                optimizer,
                self._batches_at(step, accumulation) if batch is None else [batch],
                carries if batch is None else [None],
                lr=lr * min(1.0, (step + 1) / max(1.0, WARMUP_FRACTION * steps)),
                seed=(config.training.seed, step),
                precision=config.training.precision,
                activation_checkpointing=config.training.activation_checkpointing,
            )
            carries = new_carries if batch is None else carries
            loss = result.metrics.get("loss", result.loss)
            if result.first_nonfinite or not loss <= TOO_HIGH * abs(losses[0] if losses else loss):
                return [*losses, math.inf]
            losses.append(loss)
            if stop(losses):
                break
        return losses

    def _batches_at(self, step: int, accumulation: int) -> list[Any]:
        indices = range(step * accumulation, (step + 1) * accumulation)
        return [self.batches.batch(*divmod(index, self.batches.per_epoch)) for index in indices]

    def idle_weights(self, batch: Any) -> list[str]:
        """Return the names of the weights that a batch gives no gradient at the first weights."""
        with self._restored():
            self._train(0.0, 1, lambda losses: True, batch)
            return [
                name
                for name, weight in self.task.model.named_parameters()
                if weight.requires_grad and (weight.grad is None or not torch.any(weight.grad))
            ]


def end_level(losses: Sequence[float]) -> float:
    """Return the mean loss of the last tenth of the steps, of five at least."""
    last = losses[-max(5, len(losses) // 10) :]
    return sum(last) / len(last)
