"""The result of a comparison."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from foveal.core.errors import RunFailed
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.metrics.student_t import mean_interval
from foveal.store.manifest import LogUnits, read_manifest
from foveal.studies.compare.differences import Difference, paired_differences
from foveal.studies.compare.results import MIN_SEEDS, ModelResult, TrainedRun, read_run
from foveal.studies.compare.sequences import SequenceFacts, sequence_facts
from foveal.studies.compare.stored_models import PlannedModel, PlannedModels
from foveal.studies.compare.terms import Terms
from foveal.studies.trials.process import TrialEnd
from foveal.studies.trials.same_data import check_same_data
from foveal.studies.trials.trainings import Training
from foveal.tasks.session import Session

Cost = Literal["seconds", "flops"]
"""What a training takes."""
NO_LOSS = "its held-out loss is not finite"
OVER_SEEDS = (
    "each model has the learning rate, the schedule and the precision of its preset: a tuned rate can change "
    "the order. Intervals are over seeds, on the same held-out rows; other rows differ, too. The p-values "
    "are corrected for the number of pairs (Holm). Times and speeds are those of this machine"
)


@dataclass(frozen=True)
class Comparison:
    """Models that were trained on equal terms, or runs that were scored on equal rows."""

    folder: Path | None
    """The folder of the study; None for existing runs."""
    data: str
    facts: tuple[tuple[str, str], ...]
    """What is equal."""
    caveat: str
    noun: str
    """What the losses of a model were measured over: a `seed`, or a `row`."""
    split: str
    """The split of the losses, `test` or `valid`."""
    loss_unit: str
    """What the loss is in, such as `nats per token`."""
    speed_unit: str
    """The unit of a step's inputs, such as `characters`."""
    models: tuple[ModelResult, ...]
    differences: Sequence[Difference]
    """The differences of all pairs."""
    sequences: SequenceFacts | None = None
    """Costs by length and losses by position, of models of sequences."""

    @property
    def trained(self) -> list[ModelResult]:
        """The models that have a run, the lowest mean loss first."""
        return sorted((model for model in self.models if model.runs), key=lambda model: model.mean("loss"))

    @property
    def best(self) -> ModelResult:
        """The model with the lowest mean loss."""
        return self.trained[0]

    def difference(self, first: str, second: str) -> Difference | None:
        """Return the loss of a model minus that of another; None if they have too few seeds in common."""
        both = (*self.differences, *(each.reversed() for each in self.differences))
        return next((each for each in both if (each.first, each.second) == (first, second)), None)

    def front(self, cost: Cost) -> list[ModelResult]:
        """Return the models that no other beats, the cheapest first: another is lower in mean loss or `cost`,
        and not higher in the other."""

        def pair(model: ModelResult) -> tuple[float, float]:
            return getattr(model, cost), model.mean("loss")

        def is_beaten(own: tuple[float, float]) -> bool:
            others = (pair(other) for other in self.trained)
            return any(x <= own[0] and y <= own[1] and (x, y) != own for x, y in others)

        return [model for model in sorted(self.trained, key=pair) if not is_beaten(pair(model))]


def read_comparison(
    folder: Path,
    data: str,
    terms: Terms,
    planned: PlannedModels,
    trainings: Sequence[Training],
    ends: Mapping[tuple[str, int], TrialEnd],
) -> Comparison:
    """Return the comparison of the runs that were trained to their end, and have a finite loss.

    Raises: UserError: a run is damaged, or two runs were trained on different data.
    Raises: RunFailed: there is no such run.
    """
    runs: dict[str, list[TrainedRun]] = {model.name: [] for model in planned.models}
    errors: dict[str, dict[int, str]] = {model.name: {} for model in planned.models}
    for each in trainings:
        end = ends[each.model, each.seed]
        run = read_run(each.path, each.seed) if end.state == "finished" else None
        if run is None:
            errors[each.model][each.seed] = end.error or NO_LOSS
        else:
            runs[each.model].append(run)
    all_runs = [run for of_model in runs.values() for run in of_model]
    if not all_runs:
        raise RunFailed(f"{folder}: no training has a held-out loss; the first: {_first_error(errors)}")
    check_same_data([run.path for run in all_runs])
    models = tuple(_model_result(each, runs[each.name], errors[each.name]) for each in planned.models)
    losses = {model.name: {run.seed: run.loss for run in model.runs} for model in models}
    facts = (
        ("equal terms", terms.words(planned.models[0].name)),
        ("data and task", f"the settings of {planned.origin}, for all models"),
        ("runs", str(folder)),
    )
    return Comparison(
        folder,
        data,
        facts,
        OVER_SEEDS,
        "seed",
        all_runs[0].split,
        *units_of(all_runs[0].path),
        models,
        paired_differences(losses, MIN_SEEDS),
    )


def _first_error(errors: Mapping[str, Mapping[int, str]]) -> str:
    model, of_model = next(iter(errors.items()))
    seed, error = next(iter(of_model.items()))
    return f"{model}, seed {seed}: {error}"


def with_sequences(
    comparison: Comparison, open_run: Callable[[Path], Session], log: Log, progress: ProgressCallback
) -> Comparison:
    """Return the comparison with costs by length and losses by position, if its models read or write
    sequences. What can't be measured is named with its error.
    """
    return replace(comparison, sequences=sequence_facts(comparison.models, open_run, log, progress))


def units_of(run: Path) -> tuple[str, str]:
    """Return what the losses of a run are in, and the unit of a step's inputs."""
    units = LogUnits.model_validate(read_manifest(run)["log_units"])
    return "nats" if units.loss_unit is None else f"nats per {units.loss_unit}", units.speed_unit


def _model_result(plan: PlannedModel, runs: Sequence[TrainedRun], errors: Mapping[int, str]) -> ModelResult:
    """Return a model with the interval of its loss over seeds, if there are enough."""
    mean = mean_interval([run.loss for run in runs]) if len(runs) >= MIN_SEEDS else None
    return ModelResult(plan, tuple(runs), errors, len(runs), mean)
