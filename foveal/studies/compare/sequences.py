"""What only models of sequences have in a comparison: costs by length, and losses by position."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.panels import Lines, Panel, Series, Table
from foveal.studies.compare.by_length import LengthCost, costs_by_length
from foveal.studies.compare.by_position import PositionLosses, losses_by_position, mean_by_position
from foveal.studies.compare.results import ModelResult
from foveal.tasks.session import Session

SIZE = (6.4, 3.4)
COST_TITLES = {
    "training_speed": ("tokens trained on a second", 1.0),
    "generation_speed": ("tokens generated a second", 1.0),
    "memory": ("MB of a training step", 1e6),
    "state": ("kB of the state of a row in generation", 1e3),
}
"""The titles of the pictures of costs, and the size of their units."""


@dataclass(frozen=True)
class SequenceFacts:
    """Costs by length and losses by position, by the name of the model."""

    costs: Mapping[str, Sequence[LengthCost]]
    losses: Mapping[str, PositionLosses]
    runs: Mapping[str, Sequence[PositionLosses]]
    """The losses of each run."""
    row: str = "context"
    """What has a length, and the positions."""
    positions_alike: bool = True
    """Positions differ only by what stands before them, so that later ones show the use of far context."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Why something could not be measured, by its name, such as "lstm by length"."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for programs."""
        costs = {name: [vars(cost) for cost in of_model] for name, of_model in self.costs.items()}
        losses = {name: {**of_model} for name, of_model in self.losses.items()}
        return {"by_length": costs, "by_position": losses, "not_measured": {**self.errors}}

    def panels(self) -> list[Panel]:
        """Return tables and pictures."""
        costs: list[Panel] = [self._costs_table(), *self._cost_curves()] if any(self.costs.values()) else []
        return [*costs, self._losses_table(), self._loss_curves()] if self.losses else costs

    def facts(self) -> list[tuple[str, str]]:
        """Return what could not be measured."""
        return [("not measured", f"{name}: {error}") for name, error in self.errors.items()]

    def _costs_table(self) -> Table:
        rows = tuple(
            (
                name,
                f"{cost.length:,}",
                f"{cost.training_speed:,.0f}",
                f"{cost.generation_speed:,.0f}",
                f"{cost.memory / 1e6:,.1f} MB",
                f"{cost.state / 1e3:,.1f} kB",
                f"{cost.flops:.3g}",
            )
            for name, of_model in self.costs.items()
            for cost in of_model
        )
        columns = (
            "model",
            "length",
            "trained a second",
            "generated a second",
            "memory",
            "state",
            "FLOPs per token",
        )
        title = "tokens a second, memory of a step, and state of a row in generation, by length of the"
        return Table(f"{title} {self.row}", columns, rows)

    def _cost_curves(self) -> Iterator[Lines]:
        """Yield a picture of each cost, on logarithmic scales."""
        for name, (title, unit) in COST_TITLES.items():
            series = tuple(
                Series(
                    model,
                    [cost.length for cost in of_model],
                    [getattr(cost, name) / unit for cost in of_model],
                    "dots",
                    number,
                )
                for number, (model, of_model) in enumerate(self.costs.items())
            )
            yield Lines(title, series, f"length of the {self.row}", log_x=True, log_y=True)

    def _losses_table(self) -> Table:
        """Return the loss of each range of positions, and how much the last range gains."""
        rows = [
            (name, *(f"{losses[start]:.4f}" for losses in self.losses.values()))
            for start, name in self.ranges().items()
        ]
        if self.positions_alike and len(rows) > 1:
            rows.append(("gain of the last", *(f"{gain:.4f}" for gain in self.last_gains().values())))
        return Table(f"loss by position in the {self.row}", ("position", *self.losses), tuple(rows))

    def _loss_curves(self) -> Lines:
        series, colors = [], [*self.costs]
        for name, losses in self.losses.items():
            of_runs = [[losses[start] for start in losses] for losses in self.runs[name]]
            band = [min(each) for each in zip(*of_runs, strict=True)], [*map(max, zip(*of_runs, strict=True))]
            series.append(Series(name, [*losses], [*losses.values()], "dots", colors.index(name), band))
        title, x = "loss by position, mean and range of the runs", "first position of a range"
        return Lines(title, tuple(series), x, "loss", log_x=True, size=SIZE)

    def ranges(self) -> dict[int, str]:
        """Return the ranges of positions in words, by their first positions; none without losses."""
        if not self.losses:
            return {}
        starts = [*next(iter(self.losses.values()))]
        names = [f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts)]
        return dict(zip(starts, [*names, f"from {starts[-1]}"], strict=True))

    def last_gains(self) -> dict[str, float]:
        """Return by how much the loss of each model falls from the range before the last to the last."""
        return {
            name: losses[before] - losses[last]
            for name, losses in self.losses.items()
            for before, last in [[*losses][-2:]]
        }


def sequence_facts(
    models: Sequence[ModelResult],
    open_run: Callable[[Path], Session],
    log: Log,
    progress: ProgressCallback,
) -> SequenceFacts | None:
    """Return what only models of sequences have; None for other models. An error, as of data that have
    changed, is kept with what it left unmeasured."""
    costs: dict[str, list[LengthCost]] = {model.name: [] for model in models}
    runs: dict[str, list[PositionLosses]] = {}
    errors: dict[str, str] = {}
    total, done = sum(len(model.runs) for model in models), 0
    row, positions_alike = "", False
    for model in models:
        for number, run in enumerate(model.runs):
            progress(done, total)
            done += 1
            with _errors_kept(errors, f"{run.path} by length and position"):
                session = open_run(run.path)
                if not session.task.sequence:
                    return None
                row, positions_alike = session.task.sequence, session.task.positions_alike
                data = session.training_data(log)
                if not number:
                    with _errors_kept(errors, f"{model.name} by length"):
                        device = next(session.model.parameters()).device
                        costs[model.name] = costs_by_length(session.config, data, device)
                with _errors_kept(errors, f"{run.path} by position"):
                    of_run = losses_by_position(session, data.held_out)
                    runs.setdefault(model.name, []).append(of_run)
    losses = {name: mean_by_position(of_runs) for name, of_runs in runs.items()}
    return SequenceFacts(costs, losses, runs, row, positions_alike, errors)


@contextmanager
def _errors_kept(errors: dict[str, str], name: str) -> Iterator[None]:
    """Keep the error of a measurement by its name. It is no reason to lose the trainings."""
    try:
        yield
    except Exception as error:  # as of a plugin's objective, or with too little memory
        errors[name] = f"{type(error).__name__}: {error}"
