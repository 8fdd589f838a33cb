"""What a task returns: a summary of its data, predictions, and scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foveal.data.core.rows import SkippedRow
from foveal.metrics.score import MetricResult

PredictedIds = dict[int, list[int]]
"""Maps a row to the ids of its predicted labels (`core.result`)."""


@dataclass(frozen=True)
class TaskSummary:
    """A task on its data in words, shown before training."""

    data: str
    task: str
    num_outcomes: int | None
    """The loss of an untrained model is expected to be `ln num_outcomes`; None if there is no such value."""
    unit: str
    """The unit of speed."""


class Predictions(NamedTuple):
    """The model's output for each source, and the probability of the output if the task has one."""

    sources: list[str]
    outputs: list[str]
    probabilities: list[float] | None = None
    locations: list[str] | None = None
    """The location of each source in the data."""
    skipped: Sequence[SkippedRow] = ()
    """The rows without an output."""


@dataclass(frozen=True)
class EvaluationResult:
    """A model's outputs for held-out examples, the references in the same order, and the scores."""

    sources: list[str]
    references: list[str]
    outputs: list[str]
    lengths: list[int]
    """The lengths of the sources, for scores by length."""
    scores: list[MetricResult]
