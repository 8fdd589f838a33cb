"""What is equal in a comparison."""

import re
from dataclasses import dataclass
from typing import Literal

from foveal.core.errors import UserError
from foveal.studies.compare.results import MIN_SEEDS
from foveal.training.plan import Budget, parse_budget

Match = Literal["params", "flops", "memory", "time", "tokens", "none"]
ON_EQUAL_TOKENS = ("flops", "tokens")
"""What is equal only if all models see as many tokens."""
SIZES: dict[Match, str] = {
    "params": "parameters",
    "flops": "FLOPs per token",
    "memory": "bytes of a training step",
}
"""What widths are solved for."""
DEFAULT_MATCH: Match = "params"
DEFAULT_BUDGETS: dict[Match, str] = {"time": "3m"}
DEFAULT_BUDGET = "1000steps"
SCALE = {"": 1, "k": 1_000, "M": 1_000_000, "B": 1_000_000_000}


@dataclass(frozen=True)
class Terms:
    """What is equal in a comparison, and the number of seeds.

    Raises: UserError: the seeds are too few, or the budget or `parameters` do not fit `match`.
    """

    match: Match
    parameters: int | None
    """The parameters that all models are to have; None for those of the first model."""
    budget: str
    seeds: int

    def __post_init__(self) -> None:
        if self.seeds < MIN_SEEDS:
            raise UserError(
                f"--seeds {self.seeds}: give at least {MIN_SEEDS}: fewer runs say nothing about their spread"
            )
        if self.parameters is not None and self.match != "params":
            raise UserError(f"--parameters goes with --match params, and not with --match {self.match}")
        unit = self.parsed_budget.unit
        if self.match == "time" and unit != "seconds":
            raise UserError(f"--match time: --budget {self.budget} is no time; give one such as 3m")
        if self.match in ON_EQUAL_TOKENS and unit == "seconds":
            raise UserError(
                f"--match {self.match}: in --budget {self.budget} a faster model sees more tokens; give a "
                "budget such as 1000steps or 1Mtokens"
            )
        if self.parsed_budget.amount == 0:
            raise UserError(f"--budget {self.budget}: nothing would be trained; give more")

    @property
    def parsed_budget(self) -> Budget:
        return parse_budget(self.budget)

    def words(self, first: str) -> str:
        """Return what is equal, in words. `first` is the name of the first model."""
        sizes = "each model has its own size"
        if self.match in SIZES:
            origin = f"those of {first}" if self.parameters is None else f"{self.parameters:,}"
            sizes = f"{SIZES[self.match]} within 2 % ({origin})"
        seeds = f"seeds (0 to {self.seeds - 1})"
        return f"the same rows, processor, batches and {seeds}; {self.budget} for each run, and {sizes}"


def make_terms(match: Match | None, parameters: str | None, budget: str | None, seeds: int | None) -> Terms:
    """Return the terms of a comparison, with defaults for what is not given.

    Raises: UserError: a value has another form, or they do not fit each other.
    """
    match = match or DEFAULT_MATCH
    return Terms(
        match,
        None if parameters is None else parse_count(parameters),
        DEFAULT_BUDGETS.get(match, DEFAULT_BUDGET) if budget is None else budget,
        MIN_SEEDS if seeds is None else seeds,
    )


def parse_count(text: str) -> int:
    """Parse a number of parameters such as `3M` or `250000`.

    Raises: UserError: the text has another form.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMB]?)", text.strip())
    if match is None or not (count := round(float(match[1]) * SCALE[match[2]])):
        raise UserError(f"--parameters {text}: expected a number above 0, such as 3M or 250000")
    return count
