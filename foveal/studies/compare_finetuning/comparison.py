"""The ways to fine-tune an encoder, trained and measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foveal.inspection.curves.log_records import read_metrics_log
from foveal.inspection.payload import Payload
from foveal.studies.compare_finetuning.advice import MeasuredAccuracy, Strategy, verdict
from foveal.studies.compare_finetuning.report import finetuning_payload
from foveal.studies.compare_finetuning.similarity import FeatureSimilarity
from foveal.studies.study_result import StudyResult


@dataclass(frozen=True)
class TrainedWay:
    """A way to fine-tune, with its scores after the training."""

    path: Path
    split: str
    steps: int
    seconds: float
    """Seconds of training steps."""
    loss: float
    accuracy: MeasuredAccuracy
    curve: tuple[tuple[float, float], ...]
    """Seconds of training, and the validation loss there."""


@dataclass(frozen=True, repr=False)
class FinetuningComparison(StudyResult):
    """The usual advice for a run and new images, and the measurements that test the advice."""

    folder: Path
    data: str
    similarity: FeatureSimilarity
    ways: Mapping[Strategy, TrainedWay]
    errors: Mapping[Strategy, str]
    """Why trainings failed."""

    @property
    def split(self) -> str:
        """The split of the scores, `test` or `valid`."""
        return next(iter(self.ways.values())).split

    @property
    def verdict(self) -> str:
        """Return in words whether the measurements confirm the advice."""
        advised = self.similarity.advice.strategy
        if advised not in self.ways:
            return f"the training of {advised}, which was advised, failed: {self.errors[advised]}"
        return verdict(advised, {way: trained.accuracy for way, trained in self.ways.items()})

    def payload(self) -> Payload:
        """Return the report."""
        return finetuning_payload(self)


def trained_way(
    path: Path, split: str, loss: float, accuracy: float, interval: tuple[float, float]
) -> TrainedWay:
    """Return a trained way with what its log says about the training.

    Raises: UserError: the log is damaged.
    """
    records = read_metrics_log(path / "metrics.jsonl")
    seconds = {record["step"]: record["seconds"] for record in records["step"]}
    evaluations = [each for each in records["evaluation"] if each["loss"] is not None]
    curve = tuple((seconds[each["step"]], each["loss"]) for each in evaluations if each["step"] in seconds)
    last = records["step"][-1]
    measured = MeasuredAccuracy(accuracy, *interval)
    return TrainedWay(path, split, last["step"], last["seconds"], loss, measured, curve)
