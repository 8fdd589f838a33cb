"""How long trials are, so that enough of them fit in the budget."""

import math
from dataclasses import dataclass

from foveal.core.errors import UserError
from foveal.core.terminal_text import counted
from foveal.studies.tune.checks import Cost
from foveal.ui.console import format_duration

CHECKS_END, COARSE_END, REFINED_END = 1 / 8, 3 / 8, 6 / 8
"""The shares of the budget at which the checks, the coarse and the refined trials end."""
COARSE_TRIALS, REFINED_TRIALS = 8, 3
"""Trials that fit in these shares, by which the lengths of trials are chosen."""
MIN_COARSE_TRIALS, MIN_STEPS, MAX_EPOCHS = 4, 20, 5
"""Trials that have to fit, and the bounds of a coarse trial's length."""


@dataclass(frozen=True)
class Lengths:
    """The steps of coarse and of refined trials."""

    coarse: int
    refined: int


def check_budget(cost: Cost, budget: float) -> None:
    """Check that enough coarse trials fit in a budget.

    Raises: UserError: they don't.
    """
    shortest = min(MIN_STEPS, cost.full_steps)
    share = COARSE_END - CHECKS_END
    if cost.steps_in(share * budget / MIN_COARSE_TRIALS) < shortest:
        trial = cost.trial_seconds(shortest)
        minutes = math.ceil(MIN_COARSE_TRIALS * trial / share / 60)
        raise UserError(
            f"--budget {format_duration(budget)} is too little: a trial of {counted(shortest, 'step')} takes "
            f"{format_duration(trial)}; give --budget {minutes}m or more, or a smaller model"
        )


def choose_lengths(cost: Cost, budget: float) -> Lengths:
    """Return how long trials are, so that enough of them fit in the budget."""
    shortest = min(MIN_STEPS, cost.full_steps)
    most = min(cost.full_steps, max(shortest, math.ceil(MAX_EPOCHS * cost.steps_per_epoch)))
    coarse = min(most, max(shortest, cost.steps_in((COARSE_END - CHECKS_END) * budget / COARSE_TRIALS)))
    refined = cost.steps_in((REFINED_END - COARSE_END) * budget / REFINED_TRIALS)
    return Lengths(coarse, max(coarse, min(refined, cost.full_steps)))
