"""Scores and generated texts, which show themselves in a notebook and on a terminal."""

import html
from collections.abc import Sequence
from typing import Any

from foveal.api.evaluation import RunEvaluation
from foveal.api.results.table import Table, shown_cell


class Evaluation(Table):
    """The scores of a run on held-out data: a row for each, with its interval if there is one.

    `evaluation["accuracy"]` is a number, `evaluation.scores` has all by name, and `evaluation.worst` the
    examples with the highest loss.
    """

    def __init__(self, evaluation: RunEvaluation, values: dict[str, Any]):
        report = evaluation.report
        self.split = evaluation.split
        """The data: `test`, `valid`, or the path that was named."""
        self.scores: dict[str, float] = dict(evaluation.scores)
        """Each score by its name."""
        intervals = {} if report is None else report.intervals
        if report is not None:
            self.scores |= {score.name: score.value for score in report.scores}
        self.worst = Table([] if report is None else [example.to_json() for example in report.worst])
        """The examples with the highest loss, or the worst score."""
        self.values = values
        """All of it for programs, as `foveal evaluate --json` prints it."""
        rows = []
        for name, value in self.scores.items():
            interval = intervals.get(name)
            bounds = {} if interval is None else dict(zip(("low", "high"), interval, strict=True))
            rows.append({"score": name, "value": value, "low": None, "high": None} | bounds)
        super().__init__(rows)

    def __getitem__(self, index: Any) -> Any:
        """Return the score with a name; else a row, rows or a column as of every table."""
        return (
            self.scores[index]
            if isinstance(index, str) and index in self.scores
            else super().__getitem__(index)
        )


class GeneratedTexts(Table):
    """Texts that a run has generated. `str` has the texts alone, and `texts` is a list of them.

    A run that generates images has no texts: `str` has the files and their number.
    """

    def __init__(self, samples: Sequence[dict[str, Any]], values: dict[str, Any]):
        super().__init__(samples)
        self.values = values
        """All of it for programs, as `foveal generate --json` prints it."""

    @property
    def texts(self) -> list[str]:
        """The texts, without their prompts."""
        return [str(row.get("text", "")) for row in self]

    def __str__(self) -> str:
        if not len(self):
            return "\n".join(f"{name}: {shown_cell(value)}" for name, value in self.values.items())
        return "\n\n".join(
            str(row.get("text", "")) if "source" in row else f"{row.get('prompt', '')}{row.get('text', '')}"
            for row in self
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "<hr>".join(f"<pre>{html.escape(text)}</pre>" for text in str(self).split("\n\n"))
