"""Steps 1 to 3, which need seconds: what first weights, a few rows and a hundred iterations say."""

import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from foveal.config import parse_overrides
from foveal.core.progress import ProgressCallback
from foveal.store.durable import atomic_write
from foveal.store.regular_files import read_regular
from foveal.store.sealed_json import open_json, seal_json
from foveal.studies.tune.initial_loss import InitialLoss, measure_initial_loss
from foveal.studies.tune.overfit import Overfit, overfit
from foveal.studies.tune.probe import Probe
from foveal.studies.tune.rate_sweep import RateSweep, SweptRate, sweep_rates
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables
from foveal.tasks.session import build_model
from foveal.training.protocols import Batches

CHECKS_FILE = "checks.json"
NOT_FINITE = ("nan", "inf", "-inf")
EVALUATIONS = 6
"""Evaluations of a trial, by which it is compared with others and its curves are read."""


@dataclass(frozen=True)
class Cost:
    """What a training takes on this machine."""

    start_seconds: float
    """The time before the first step."""
    step_seconds: float
    evaluation_seconds: float
    """The time of an evaluation."""
    full_steps: int
    """The steps of a whole training."""
    steps_per_epoch: float

    def trial_seconds(self, steps: int) -> float:
        """Return the time of a trial."""
        return self.start_seconds + steps * self.step_seconds + EVALUATIONS * self.evaluation_seconds

    def steps_in(self, seconds: float) -> int:
        """Return how many steps a trial of some length has; fewer than one if there is no time for any."""
        return int((seconds - self.trial_seconds(0)) / self.step_seconds)


@dataclass(frozen=True)
class OtherFirstWeights:
    """The same measurements with the usual initialization, where another one is set."""

    initial: InitialLoss
    sweep: RateSweep


@dataclass(frozen=True)
class Checks:
    """What was measured before any trial."""

    initial: InitialLoss
    overfit: Overfit
    sweep: RateSweep
    by_default: OtherFirstWeights | None
    """With model.initialization=default; None if that is set."""
    cost: Cost
    seconds: float
    """How long all of this took."""

    @property
    def initialization_is_at_fault(self) -> bool:
        """Return whether the usual first weights learn clearly more in the same iterations."""
        if self.by_default is None or not self.by_default.sweep.learns:
            return False
        own, by_default = self.sweep, self.by_default.sweep
        learned = by_default.start - own.best.end
        possible = by_default.start - by_default.best.end
        return self.initial.is_too_high > self.by_default.initial.is_too_high or learned < possible / 2

    @property
    def rates(self) -> RateSweep:
        """The sweep that speaks of rates: from the usual weights if the given ones are at fault."""
        usable = self.by_default if self.initialization_is_at_fault else None
        return self.sweep if usable is None else usable.sweep


@dataclass(frozen=True)
class FirstModel:
    """The model of the settings as given, with its first weights."""

    task: Task
    batches: Batches
    knows_outcomes: bool
    """Whether the weights already distinguish the outcomes."""
    cost: Cost


def run_checks(first: FirstModel, seconds: float, progress: ProgressCallback) -> Checks:
    """Measure the first loss, overfit a few rows, and sweep the learning rate, in about `seconds`."""
    task, batches, knows_outcomes, cost = first.task, first.batches, first.knows_outcomes, first.cost
    began = time.monotonic()
    initial = measure_initial_loss(task, batches, knows_outcomes)
    probe = Probe(task, batches)
    learned = overfit(probe, seconds / 3, progress)
    sweep_began = time.monotonic()
    sweep = sweep_rates(probe, seconds / 3, progress)
    steps = sum(len(rate.losses) for rate in sweep.rates)
    cost = replace(cost, step_seconds=(time.monotonic() - sweep_began) / steps)
    by_default = None
    if task.config.model.initialization != "default" and not knows_outcomes:
        by_default = _with_usual_weights(task, batches, seconds / 3, progress)
    return Checks(initial, learned, sweep, by_default, cost, time.monotonic() - began)


def _with_usual_weights(
    task: Task, batches: Batches, seconds: float, progress: ProgressCallback
) -> OtherFirstWeights:
    config = from_tables(task.config.model_dump(), parse_overrides(["model.initialization=default"]))
    other = task.with_config(config)
    other = other.bind(task.processor, build_model(other, next(task.model.parameters()).device))
    initial = measure_initial_loss(other, batches, False)
    return OtherFirstWeights(initial, sweep_rates(Probe(other, batches), seconds, progress))


def write_checks(folder: Path, checks: Checks) -> None:
    """Write the checks of a study, which a resumed study reads again."""
    atomic_write(folder / CHECKS_FILE, seal_json(_finite(asdict(checks))))


def has_checks(folder: Path) -> bool:
    """Return whether the checks of a study are written, so that it goes on with its trials."""
    return (folder / CHECKS_FILE).exists()


def read_checks(folder: Path) -> Checks:
    """Return the checks that a study has written.

    Raises: UserError: the file is damaged.
    """
    file = folder / CHECKS_FILE
    table = open_json(read_regular(file), str(file))
    by_default = table["by_default"]
    return Checks(
        _initial(table["initial"]),
        Overfit(**{key: _numbers(value) for key, value in table["overfit"].items()}),
        _sweep(table["sweep"]),
        by_default and OtherFirstWeights(_initial(by_default["initial"]), _sweep(by_default["sweep"])),
        Cost(**table["cost"]),
        table["seconds"],
    )


def _initial(table: dict[str, Any]) -> InitialLoss:
    return InitialLoss(**{key: _numbers(value) for key, value in table.items()})


def _sweep(table: dict[str, Any]) -> RateSweep:
    return RateSweep(
        table["set_lr"], tuple(SweptRate(each["lr"], _numbers(each["losses"])) for each in table["rates"])
    )


def _finite(value: Any) -> Any:
    """Return a value for JSON, which has neither NaN nor infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [*map(_finite, value)] if isinstance(value, list | tuple) else value


def _numbers(value: Any) -> Any:
    """Return what `_finite` was given, with a tuple for a list."""
    if value in NOT_FINITE:
        return float(value)
    return tuple(map(_numbers, value)) if isinstance(value, list) else value
