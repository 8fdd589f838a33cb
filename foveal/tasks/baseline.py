"""A baseline fitted in seconds, beside which the score of a training is shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foveal.data.core.split_data import evenly_spaced
from foveal.metrics.score import MetricResult

MAX_COMPARED_ROWS = 1000
"""Held-out rows at most on which simple methods are compared. The best of them is scored on all rows."""
SimpleAnswers = Mapping[str, Sequence[str]]
"""The answers of simple methods to the held-out rows, by what the method is in words."""


@dataclass(frozen=True)
class Baseline:
    """The score of a simple method on the held-out rows of a training."""

    name: str
    """What the method is, such as a linear classifier of summary statistics."""
    metric: str
    value: float
    higher_is_better: bool = True
    is_rate: bool = True
    """Whether the value is a rate, which is shown in percent."""

    @classmethod
    def of(cls, name: str, score: MetricResult) -> "Baseline":
        return cls(name, score.name, score.value, score.higher_is_better, score.is_rate)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, self.metric: self.value}

    def in_words(self, value: float) -> str:
        """Return a value of the baseline's metric in words."""
        return f"{100 * value:.1f} %" if self.is_rate else f"{value:.4g}"

    def words_of(self, value: float) -> str:
        """Return the metric and a value of it in words."""
        return f"{self.metric.replace('_', ' ')} {self.in_words(value)}"

    def is_beaten_by(self, value: float) -> bool:
        """Return whether a model's value of the metric is better than the baseline's, or perfect."""
        best = float(self.higher_is_better)
        if self.is_rate and value == best:
            return True
        return value > self.value if self.higher_is_better else value < self.value

    def warning(self, value: float, can_go_on: bool) -> str:
        """Return a warning if a model's value of the metric is not better than the baseline's; else an empty
        text. `can_go_on` says that the model still became better in the last steps."""
        if self.is_beaten_by(value):
            return ""
        own, other = self.in_words(value), self.in_words(self.value)
        words = self.words_of(value)
        compared = f"both have {words}" if own == other else f"{words} against {other}"
        longer = " train longer," if can_go_on else ""
        return (
            f"this model is no better than {self.name}: {compared}; give more rows,{longer} or try another "
            "--model"
        )


def best_baseline(
    answers: SimpleAnswers,
    references: Sequence[str],
    score: Callable[[list[str], list[str]], MetricResult],
) -> Baseline | None:
    """Return the baseline whose answers have the best score; None if there are no answers.

    `score` is a function from references and answers to a score.
    """
    if not answers:
        return None
    rows = evenly_spaced(len(references), MAX_COMPARED_ROWS)

    def value_on_some(name: str) -> float:
        result = score([references[row] for row in rows], [answers[name][row] for row in rows])
        return result.value if result.higher_is_better else -result.value

    best = next(iter(answers)) if len(answers) == 1 else max(answers, key=value_on_some)
    return Baseline.of(best, score([*references], [*answers[best]]))
