"""What a task returns: a summary of its data, answers, and scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from foveal.core.result import PredictedLabels
from foveal.data.core.fields import Fields
from foveal.metrics.score import MetricResult
from foveal.store.manifest import LogUnits

LabelsByRow = dict[int, PredictedLabels]
"""Maps a row to the labels that the objective predicted while it computed the loss."""
UNSURE = "unsure"
"""The answer whose probability is below the threshold of `foveal predict --threshold`."""


@dataclass(frozen=True)
class TaskSummary:
    """A task on its data in words, shown before training."""

    data: str
    task: str
    num_outcomes: int | None
    """The loss of an untrained model is expected to be `ln num_outcomes`; None if there is no such value."""
    unit: str
    """The unit of speed."""

    def log_units(self, loss_unit: str | None) -> LogUnits:
        """Return what the numbers in the log of a training mean."""
        return LogUnits(speed_unit=self.unit, loss_unit=loss_unit, num_outcomes=self.num_outcomes)


class Alternative(NamedTuple):
    """One of the likeliest answers, and its probability."""

    answer: str
    probability: float


@dataclass(frozen=True)
class Answer:
    """A model's answer to a source: a text or a label.

    If each place of a source has a label, each field is a list with an entry for each place.
    """

    text: str | list[str]
    probability: float | list[float]
    """For a written answer the geometric mean of the probabilities of its tokens."""
    top: Sequence[Alternative] | Sequence[Sequence[Alternative]]
    """The likeliest answers, the likeliest first."""
    log_probability: float | None = None
    """The mean log-probability of a token of a written answer in nats, including the end; None for labels."""

    @property
    def line(self) -> str:
        """The answer as a single line; the labels of places are separated by spaces."""
        return " ".join(self.text.split() if isinstance(self.text, str) else self.text)

    def above(self, threshold: float) -> "Answer":
        """Return the answer with `UNSURE` in place of texts whose probability is below `threshold`."""
        if isinstance(self.text, str):
            assert isinstance(self.probability, float)
            return self if self.probability >= threshold else replace(self, text=UNSURE)
        assert isinstance(self.probability, list)
        pairs = zip(self.text, self.probability, strict=True)
        return replace(self, text=[text if share >= threshold else UNSURE for text, share in pairs])


class AnsweredRow(NamedTuple):
    """A row of the data with its answer, or with the reason why there is no answer."""

    location: str
    source: str
    """The text of the source, or the name of its file."""
    columns: Fields
    """The row's own columns."""
    answer: Answer | None
    reason: str
    """Why there is no answer, or which parts of the source are left out."""


@dataclass(frozen=True)
class EvaluationResult:
    """A model's outputs for held-out examples, the references in the same order, and the scores."""

    sources: Sequence[str]
    references: Sequence[str]
    outputs: list[str]
    lengths: Sequence[int]
    """The lengths of the sources, for scores by length."""
    scores: list[MetricResult]
    losses: list[float] | None = None
    """The loss of each example, by which the worst are found; None where the first score ranks them."""
    notes: tuple[str, ...] = ()
    """What to know about the scores."""
    place: str = ""
    """The place that has a label, such as a word, if examples have a label for each place."""
