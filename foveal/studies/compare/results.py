"""What the trainings of a comparison came to: the scores of each run, and the mean of each model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foveal.core.errors import UserError
from foveal.inspection.curves.log_records import read_metrics_log
from foveal.metrics.student_t import Mean
from foveal.store.scores import read_scores
from foveal.studies.compare.stored_models import PlannedModel

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
    count: int
    """The seeds or rows that the loss was measured over."""
    loss: Mean | None
    """The mean held-out loss with its interval; None for too few runs."""

    @property
    def name(self) -> str:
        return self.plan.name

    def mean(self, score: str) -> float:
        """Return the mean of a score over the runs."""
        return sum(run.scores[score] for run in self.runs) / len(self.runs)

    @property
    def flops(self) -> float:
        """The mean floating-point operations of a training."""
        return self.plan.flops * self.tokens

    @property
    def tokens(self) -> float:
        """The mean tokens trained on."""
        return sum(run.tokens for run in self.runs) / len(self.runs)

    @property
    def seconds(self) -> float:
        """The mean seconds of training."""
        return sum(run.seconds for run in self.runs) / len(self.runs)


def read_run(path: Path, seed: int) -> TrainedRun | None:
    """Return a finished run; None if its held-out loss is not finite.

    Raises: UserError: the run is damaged.
    """
    final = read_scores(path, None)
    if final is None or final.scores.get("loss") is None:
        return None
    scores = {name: score for name, score in final.scores.items() if score is not None}
    return logged_run(path, seed, final.split, scores)


def logged_run(path: Path, seed: int, split: str, scores: Mapping[str, float]) -> TrainedRun:
    """Return a run with what its log says about its training.

    Raises: UserError: the log is damaged, or the run has none.
    """
    records = read_metrics_log(path / "metrics.jsonl") if (path / "metrics.jsonl").exists() else {}
    if not records.get("step"):
        raise UserError(f"{path}: has no log of a training to compare")
    tokens = {record["step"]: record["tokens"] for record in records["step"]}
    evaluations = [each for each in records.get("evaluation", ()) if each["loss"] is not None]
    curve = tuple((tokens[each["step"]], each["loss"]) for each in evaluations if each["step"] in tokens)
    last = records["step"][-1]
    return TrainedRun(seed, path, split, scores, last["step"], last["tokens"], last["seconds"], curve)
