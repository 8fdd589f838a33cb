"""Step 1: the loss of first weights against that of a guess, ln C for C outcomes."""

import math
from dataclasses import dataclass

import torch

from foveal.core.runtime import autocast, seed_everything
from foveal.core.terminal_text import decimals
from foveal.inspection.diagnosis.first_weights import WORSE_THAN_GUESS
from foveal.tasks.base import Task
from foveal.training.carry import starting_carry
from foveal.training.protocols import Batches

BATCHES = 4
"""Batches whose losses are averaged."""
BELOW = 0.1
"""A first loss lower by this share of a guess's knows something about the outcomes."""


@dataclass(frozen=True)
class InitialLoss:
    """The loss of first weights."""

    measured: float
    expected: float | None
    """The loss of a guess; None if the task has no such value, or if the weights were trained before."""

    @property
    def is_too_high(self) -> bool:
        """Return whether the model is confident, and wrong."""
        return self.expected is not None and not self.measured - self.expected < WORSE_THAN_GUESS

    @property
    def meaning(self) -> str:
        """Return what the measured loss says."""
        loss = decimals(self.measured, 3)
        if not math.isfinite(self.measured):
            return (
                f"{loss}: the first weights or the inputs are so large that numbers overflow, or not finite"
            )
        if self.expected is None:
            return f"{loss}: no value is expected, since the weights know something or the loss has no guess"
        outcomes = f"{math.exp(self.expected):,.0f} outcomes"
        guess = (
            f"a guess among {outcomes} has ln({math.exp(self.expected):,.0f}) = {decimals(self.expected, 3)}"
        )
        if self.is_too_high:
            return (
                f"{loss}, but {guess}: the first outputs are large and wrong, so training begins by making "
                "them small; smaller first weights (model.initialization=default), or standardized inputs, "
                "correct this"
            )
        if self.measured < (1 - BELOW) * self.expected:
            return (
                f"{loss}, below what {guess}: the model knows something before it has learned (a lookup, "
                "weights of an earlier training), or its inputs contain the answer"
            )
        return f"{loss}, and {guess}: as expected"


def measure_initial_loss(task: Task, batches: Batches, knows_outcomes: bool) -> InitialLoss:
    """Return the mean loss of the task's model, as it is, on its first training batches.

    `knows_outcomes` says that the weights were trained before.
    """
    model, config, objective = task.model, task.config, task.objective()
    model.eval()
    total = weight = 0.0
    is_rewarded = False
    for index in range(min(BATCHES, batches.per_epoch)):
        batch = batches.batch(0, index)
        seed_everything(config.training.seed, "initial loss", index)
        with torch.no_grad(), autocast(next(model.parameters()).device, config.training.precision):
            output, _ = objective(batch, starting_carry(objective, batch, None))
        is_rewarded = is_rewarded or "reward" in output.metrics
        loss, count = output.metrics["loss"]
        total, weight = total + loss, weight + count
    outcomes = task.num_outcomes
    expected = None if outcomes is None or knows_outcomes or is_rewarded else math.log(outcomes)
    return InitialLoss(total / weight if weight else math.nan, expected)
