"""What the trainings of a comparison came to: the scores of each run, and the mean of each model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.inspection.curves.log_records import read_metrics_log
from foveal.metrics.student_t import Mean, mean_interval
from foveal.store.manifest import read_manifest
from foveal.store.scores import read_scores
from foveal.studies.compare.study import PlannedModel
from foveal.tasks.warm_start import INITIAL_WEIGHTS_FILE

MIN_SEEDS = 3
"""Runs of a model at least, whose spread gives an interval."""


@dataclass(frozen=True)
class TrainedRun:
    """A run with its scores after the training."""

    seed: int
    path: Path
    split: str
    scores: Mapping[str, float]
    steps: int
    tokens: int
    seconds: float
    """Seconds of training steps."""
    curve: tuple[tuple[int, float], ...]
    """Tokens trained on, and the validation loss there."""

    @property
    def loss(self) -> float:
        return self.scores["loss"]


@dataclass(frozen=True)
class ModelResult:
    """A model with its runs."""

    plan: PlannedModel
    runs: tuple[TrainedRun, ...]
    errors: Mapping[int, str]
    """Why trainings failed, by seed."""

    @property
    def name(self) -> str:
        return self.plan.name

    def mean(self, score: str) -> float:
        """Return the mean of a score over the runs."""
        return sum(run.scores[score] for run in self.runs) / len(self.runs)

    @property
    def loss(self) -> Mean | None:
        """The mean held-out loss with its interval; None for too few runs."""
        return mean_interval([run.loss for run in self.runs]) if len(self.runs) >= MIN_SEEDS else None

    @property
    def flops(self) -> float:
        """The mean floating-point operations of a training."""
        return self.plan.flops * sum(run.tokens for run in self.runs) / len(self.runs)

    @property
    def seconds(self) -> float:
        """The mean seconds of training."""
        return sum(run.seconds for run in self.runs) / len(self.runs)


def read_run(path: Path, seed: int) -> TrainedRun:
    """Return a finished run.

    Raises: UserError: the run is damaged, or has no finite loss.
    """
    final = read_scores(path, None)
    if final is None or final.scores.get("loss") is None:
        raise UserError(f"{path}: no held-out loss was measured")
    records = read_metrics_log(path / "metrics.jsonl")
    tokens = {record["step"]: record["tokens"] for record in records["step"]}
    evaluations = [each for each in records["evaluation"] if each["loss"] is not None]
    curve = tuple((tokens[each["step"]], each["loss"]) for each in evaluations if each["step"] in tokens)
    scores = {name: score for name, score in final.scores.items() if score is not None}
    last = records["step"][-1]
    steps = last["step"], last["tokens"], last["seconds"]
    return TrainedRun(seed, path, final.split, scores, *steps, curve)


def check_same_data(runs: Sequence[TrainedRun]) -> None:
    """Check that runs have read the same rows by the same processors.

    Raises: UserError: two runs differ.
    """
    first = _data_hashes(runs[0].path)
    for run in runs[1:]:
        if differing := [
            name for name, sha256 in _data_hashes(run.path).items() if first.get(name) != sha256
        ]:
            raise UserError(
                f"{run.path}: {differing[0]} is not that of {runs[0].path}: the runs can't be compared"
            )


def _data_hashes(path: Path) -> dict[str, Any]:
    """Return the hashes of the splits and of the processor's files."""
    manifest = read_manifest(path)
    parts = manifest["data"]["facts"]["parts"]
    files = {name: sha256 for name, sha256 in manifest["files"].items() if name.startswith("inputs/")}
    files.pop(f"inputs/{INITIAL_WEIGHTS_FILE}", None)
    return {f"the split {name}": part["sha256"] for name, part in parts.items()} | files
