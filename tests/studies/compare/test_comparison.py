"""The comparison of runs that came to their end."""

from pathlib import Path

import pytest

from foveal.core.errors import RunFailed
from foveal.studies.compare import comparison as comparison_module
from foveal.studies.compare.comparison import NO_LOSS, Comparison, read_comparison
from foveal.studies.compare.results import TrainedRun
from foveal.studies.compare.stored_models import PlannedModel, PlannedModels
from foveal.studies.compare.terms import Terms
from foveal.studies.trials.process import TrialEnd
from foveal.studies.trials.trainings import Training
from tests.support.comparisons import trained_run

NAMES, SEEDS = ("gru", "lstm"), (0, 1, 2)


def read(monkeypatch: pytest.MonkeyPatch, without_loss: set[tuple[str, int]]) -> Comparison:
    """Return a comparison of runs of which some have no finite loss."""

    def read_run(path: Path, seed: int) -> TrainedRun | None:
        return None if (path.name, seed) in without_loss else trained_run(path.name, seed, 1.0, 1.0)

    monkeypatch.setattr(comparison_module, "read_run", read_run)
    monkeypatch.setattr(comparison_module, "check_same_data", lambda paths: None)
    monkeypatch.setattr(comparison_module, "units_of", lambda path: ("nats per token", "characters"))
    models = tuple(PlannedModel(name, name, "64", 0.002, 1000, 1e5, 10**6) for name in NAMES)
    trainings = [Training(name, seed, Path(name), ()) for name in NAMES for seed in SEEDS]
    ends = {(each.model, each.seed): TrialEnd("finished") for each in trainings}
    planned = PlannedModels(models, "gru")
    return read_comparison(
        Path("study"), "notes.txt", Terms("params", None, "100steps", 3), planned, trainings, ends
    )


def test_a_run_without_a_finite_loss_has_failed_and_the_others_are_compared(monkeypatch):
    of = read(monkeypatch, {("lstm", 1)})
    gru, lstm = (next(each for each in of.models if each.name == name) for name in NAMES)
    assert (len(gru.runs), gru.errors) == (3, {})
    assert ([run.seed for run in lstm.runs], lstm.errors) == ([0, 2], {1: NO_LOSS})


def test_without_any_finite_loss_the_first_is_named(monkeypatch):
    everywhere = {(name, seed) for name in NAMES for seed in SEEDS}
    with pytest.raises(RunFailed, match="no training has a held-out loss; the first: gru, seed 0: its held"):
        read(monkeypatch, everywhere)
