"""`foveal.compare_finetuning`: how much of a run's encoder to train on new images."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from foveal.api.errors import plain_errors
from foveal.api.evaluation import evaluate_run
from foveal.api.interruption import interruptible
from foveal.api.run import Run
from foveal.api.train import base_path
from foveal.api.training.choose import open_base_run
from foveal.api.training.options import TrainingOptions
from foveal.api.training.stored import store_training
from foveal.core.runtime import resolve_device
from foveal.core.signals import Interrupted, SignalHandler
from foveal.data.open import DataPaths
from foveal.store.run_paths import default_run_path
from foveal.studies.compare_finetuning.advice import Strategy
from foveal.studies.compare_finetuning.comparison import FinetuningComparison, TrainedWay, trained_way
from foveal.studies.compare_finetuning.similarity import FeatureSimilarity, feature_similarity
from foveal.studies.compare_finetuning.ways import check_encoder, settings_of_ways
from foveal.studies.report_files import write_report
from foveal.studies.trials.folder import open_study
from foveal.studies.trials.process import options_of_plugins
from foveal.studies.trials.trainings import Training, train_all
from foveal.tasks.registry import network_task
from foveal.tasks.session import Session, load
from foveal.training.plan import Budget, parse_budget
from foveal.ui.activity import Activity
from foveal.ui.console import log, silence
from foveal.ui.progress_bar import ProgressBar

STUDY, DEFAULT_BUDGET = "compare-finetuning", "3m"


@dataclass(frozen=True)
class FinetuningRequest:
    """A comparison of ways to fine-tune as the user asks for it."""

    data: str
    overrides: tuple[str, ...]
    base: Path
    """The run whose encoder to start from."""
    valid: str | None = None
    test: str | None = None
    budget: str = DEFAULT_BUDGET
    device: str = "auto"
    run: Path | None = None

    @cached_property
    def folder(self) -> Path:
        """The folder of the study."""
        return self.run or default_run_path(self.data, STUDY)

    @property
    def parsed_budget(self) -> Budget:
        """The budget of each training.

        Raises: UserError: it is no budget.
        """
        return parse_budget(self.budget)

    def open(self) -> None:
        """Create the folder of the study, or check that the study there is this one.

        Raises: UserError: the folder belongs to something else.
        """
        settings = {
            "data": self.data,
            "overrides": [*self.overrides],
            "from": str(self.base),
            "budget": self.budget,
            "valid": self.valid,
            "test": self.test,
        }
        open_study(self.folder, STUDY, settings, self.data, self.valid, self.test)

    def trainings(self, settings: Mapping[Strategy, list[str]]) -> dict[Strategy, Training]:
        """Return the training of each way."""
        return {
            way: Training(way, 0, self.folder / way, self._arguments(way, own))
            for way, own in settings.items()
        }

    def _arguments(self, way: Strategy, settings: list[str]) -> tuple[str, ...]:
        """Return the arguments of `foveal train` for a way."""
        is_from_scratch = way == "scratch"
        options = replace(
            self._options,
            task=network_task().name,
            start_from=None if is_from_scratch else self.base,
            pretrained="no" if is_from_scratch else "auto",
        )
        return (self.data, *settings, *options.words())

    def command(self) -> str:
        """Return the command that goes on with the study."""
        options = replace(self._options, run=self.folder).words()
        return shlex.join(["foveal", STUDY, self.data, *self.overrides, *options, *options_of_plugins()])

    @property
    def _options(self) -> TrainingOptions:
        """The options that the study shares with its trainings."""
        return TrainingOptions(
            start_from=self.base, valid=self.valid, test=self.test, budget=self.budget, device=self.device
        )


@plain_errors
def compare_finetuning(
    data: Any,
    start_from: str | Path | Run,
    *,
    valid: Any = None,
    test: Any = None,
    budget: str = DEFAULT_BUDGET,
    device: str = "auto",
    run: str | Path | None = None,
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> FinetuningComparison:
    """Fine-tune a run's encoder in several ways, and compare them. `foveal compare-finetuning` does the same.

    The comparison goes on where it was stopped if it is called again with the same `run`.

    Raises: UserError: the data can't be read or have no held-out images, or the run is none of images.
    Raises: RunFailed: every training failed.

    Parameters
    ----------
    data, valid, test
        Labeled images as for `foveal.train`: paths, names, or values in memory.
    start_from
        A run of images whose encoder to start from, its path, or published weights: lite0.
    budget
        How long to train each way: 90s, 3m, 2000steps, 5epochs.
    device
        cpu, cuda, mps, or auto.
    run
        The folder of the comparison with its runs; runs/DATA-compare-finetuning-N if not given.
    quiet
        Print nothing.
    settings
        Settings in place of the run's by their keys, such as `{"data.image.size": 96}`.
    """
    base = base_path(start_from)
    assert base is not None
    options = TrainingOptions(task=network_task().name, start_from=base)
    stored = store_training(data, valid, test, options, settings)
    request = FinetuningRequest(
        stored.data,
        (*stored.overrides, *stored.options.overrides()),
        base,
        stored.options.valid,
        stored.options.test,
        budget,
        device,
        None if run is None else Path(run),
    )
    with silence(quiet), interruptible() as signals:
        return compare_ways(request, signals)


def compare_ways(request: FinetuningRequest, signals: SignalHandler) -> FinetuningComparison:
    """Train all ways, write a report into the folder of the study, and return the comparison.

    Raises: UserError or ConfigError: the data can't be read, or a setting does not fit.
    Raises: RunFailed: every training failed.
    Raises: Interrupted: a signal came; the study can go on.
    """
    budget = request.parsed_budget
    try:
        base = load(open_base_run(request.base).path, resolve_device(request.device))
        check_encoder(base)
        similarity = _similarity(request, base)
        request.open()
        trainings = request.trainings(settings_of_ways(base, request.overrides))
        ends = train_all([*trainings.values()], budget, signals)
    except Interrupted as stop:
        raise Interrupted(stop.number, f"; finished runs are kept; go on with: {request.command()}") from None
    ways: dict[Strategy, TrainedWay] = {}
    errors: dict[Strategy, str] = {}
    for way, training in trainings.items():
        end = ends[training.model, training.seed]
        if end.state == "failed":
            errors[way] = end.error
        else:
            ways[way] = _measure(training.path, request.device)
    comparison = FinetuningComparison(request.folder, request.data, similarity, ways, errors)
    with Activity("writing the report"):
        write_report(comparison.payload(), request.folder)
    return comparison


def _similarity(request: FinetuningRequest, base: Session) -> FeatureSimilarity:
    paths = DataPaths(request.data, request.valid, request.test)
    with ProgressBar("images compared") as progress:
        return feature_similarity(base, request.overrides, paths, log, progress)


def _measure(path: Path, device: str) -> TrainedWay:
    """Return a trained way with its scores on the held-out images."""
    result = evaluate_run(load(path, resolve_device(device)), None)
    assert result.report is not None  # tasks with classes have one
    interval = result.report.intervals.get("accuracy") or (0.0, 1.0)
    return trained_way(path, result.split, result.scores["loss"], result.report.scores[0].value, interval)
