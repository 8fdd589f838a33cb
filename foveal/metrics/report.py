"""Reports: scores with confidence intervals, scores by length, and the worst examples."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from foveal.metrics.intervals import ConfidenceInterval, confidence_interval, wilson_interval
from foveal.metrics.score import MetricResult

MAX_LENGTH_BINS = 6
"""Maximum number of length ranges."""
COLLAPSE_RATIO = 10
"""Warn if the references have more than this many times as many distinct texts as the outputs."""
FEW_EXAMPLES = 50
"""Fewer examples than these are told, since even a perfect score is then compatible with many errors."""
MAX_UNBINNED_LENGTHS = 8
"""Maximum number of distinct lengths that each have a bin of their own."""


@dataclass(frozen=True)
class LengthBin:
    """Examples whose source has a length from `shortest` to `longest`. `values` has the value of each metric
    on them."""

    shortest: int
    longest: int
    examples: int
    values: dict[str, float]


def scores_by_length(scores: Sequence[MetricResult], lengths: Sequence[int]) -> list[LengthBin]:
    """Return the scores in length ranges with about equally many examples. If there are few lengths, each is
    a range.

    A score whose number of examples differs from the number of lengths is left out (an example may have
    several rows).
    """
    lengths_array = np.asarray(lengths)
    ends = np.unique(lengths_array)
    if len(ends) > MAX_UNBINNED_LENGTHS:
        ends = np.unique(
            np.quantile(lengths_array, np.arange(1, MAX_LENGTH_BINS) / MAX_LENGTH_BINS, method="inverted_cdf")
        )
    bin_ids = np.searchsorted(ends, lengths_array)
    bins = [np.flatnonzero(bin_ids == bin_id) for bin_id in np.unique(bin_ids)]
    return [
        LengthBin(
            int(lengths_array[rows].min()),
            int(lengths_array[rows].max()),
            len(rows),
            {
                score.name: score.on_rows(rows)
                for score in scores
                if len(score.per_example) == len(lengths_array)
            },
        )
        for rows in bins
    ]


@dataclass(frozen=True)
class ScoredExample:
    """An example with its score. `row` counts from 0 in the order in which examples were scored."""

    row: int
    score: float
    source: str
    reference: str
    output: str
    loss: float | None = None
    """The loss in nats, if the examples are ranked by it."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields, without an unknown loss."""
        return {name: value for name, value in asdict(self).items() if name != "loss" or value is not None}


def worst_examples(
    score: MetricResult,
    sources: Sequence[str],
    references: Sequence[str],
    outputs: Sequence[str],
    n: int = 20,
    losses: Sequence[float] | None = None,
) -> list[ScoredExample]:
    """Return the n examples with the highest loss, or without `losses` the worst score; the worst first.

    Ties keep their order. Correct outputs are excluded.
    """
    badness = -score.per_example if score.higher_is_better else score.per_example
    badness = badness if losses is None else np.asarray(losses)
    ordered = np.argsort(-badness, kind="stable").tolist()
    rows = [row for row in ordered if outputs[row] != references[row]][:n]
    return [
        ScoredExample(
            *(row, float(score.per_example[row]), sources[row], references[row], outputs[row]),
            None if losses is None else losses[row],
        )
        for row in rows
    ]


@dataclass(frozen=True)
class Report:
    """Scores, their confidence intervals by name, scores by length, and the worst examples by loss, or by the
    first score.

    There are no intervals for a single example.
    """

    scores: tuple[MetricResult, ...]
    intervals: dict[str, ConfidenceInterval | None]
    by_length: list[LengthBin]
    worst: list[ScoredExample]
    warning: str = ""
    """A warning about a problem that the scores hide."""
    worst_by: str = ""
    """What ranks the worst examples."""
    notes: tuple[str, ...] = ()
    """What to know about the scores."""
    place: str = ""
    """The place that has a label, such as a word, if examples have a label for each place."""

    @property
    def legend(self) -> list[str]:
        """Return lines that say what the columns of the intervals and of n mean."""
        lines = []
        if self.place and self.intervals:
            lines.append(
                f"95 % interval: over resampled examples (n), since the {self.place}s of an example are not "
                "independent"
            )
        if None in self.intervals.values():
            lines.append("-: no interval, since all resamples of these examples have the same score")
        return lines

    @property
    def examples(self) -> int:
        """The number of examples."""
        return len(self.scores[0].per_example)

    def to_json(self) -> dict[str, Any]:
        """Return {"bleu": 31.2, "bleu_interval": [30.1, 32.3], "bleu_signature": "...", "by_length": [...],
        ...}."""
        content: dict[str, Any] = {}
        for score in self.scores:
            content[score.name] = score.value
            if score.name in self.intervals:
                interval = self.intervals[score.name]
                content[f"{score.name}_interval"] = None if interval is None else list(interval)
            if score.signature:
                content[f"{score.name}_signature"] = score.signature
        content["by_length"] = [
            {
                "shortest": length_bin.shortest,
                "longest": length_bin.longest,
                "examples": length_bin.examples,
                **length_bin.values,
            }
            for length_bin in self.by_length
        ]
        content["worst"] = [example.to_json() for example in self.worst]
        content |= {"notes": [*self.notes]} if self.notes else {}
        return content | ({"alarm": self.warning} if self.warning else {})

    def table(self, length: str = "length") -> str:
        """Return a text table: a line for each score, then a line for each range of `length`.

        `length` is the name of the length column, and may include a unit.
        """
        names = [*self.by_length[0].values] if self.by_length else []
        header = ["score", "value", *(["95 % interval"] if self.intervals else []), "n"]
        intervals = {
            name: "-" if interval is None else f"{interval[0]:.4g} to {interval[1]:.4g}"
            for name, interval in self.intervals.items()
        }
        scores = [
            [
                *(score.name, f"{score.value:.4g}"),
                *([intervals[score.name]] if self.intervals else []),
                f"{len(score.per_example):,}",
            ]
            for score in self.scores
        ]
        lengths = [
            [
                f"{length_bin.shortest} to {length_bin.longest}"
                if length_bin.shortest < length_bin.longest
                else f"{length_bin.longest}",
                str(length_bin.examples),
                *(f"{length_bin.values[name]:.4g}" for name in names),
            ]
            for length_bin in self.by_length
        ]
        tables = [[header, *scores], *([[[length, "examples", *names], *lengths]] if lengths else [])]
        return "\n\n".join(map(format_table, tables))


def make_report(
    scores: Sequence[MetricResult],
    lengths: Sequence[int],
    sources: Sequence[str],
    references: Sequence[str],
    outputs: Sequence[str],
    seed: int = 0,
    losses: Sequence[float] | None = None,
    notes: Sequence[str] = (),
    place: str = "",
) -> Report:
    """Return the report of some scores. The worst examples are those with the highest `losses`, if given.

    `place` is the place that has a label, such as a word, if examples have a label for each place.

    `lengths` (N,) are the lengths of the sources, in units such as words, characters or frames. `lengths` is
    empty if all sources have the same length.
    """
    return Report(
        tuple(scores),
        {score.name: confidence_interval(score, seed) for score in scores if len(sources) > 1},
        scores_by_length(scores, lengths) if lengths else [],
        worst_examples(scores[0], sources, references, outputs, losses=losses),
        collapse_warning(references, outputs),
        scores[0].name if losses is None else "loss",
        (*notes, *few_examples_note(len(sources), place)),
        place,
    )


def few_examples_note(count: int, place: str = "") -> list[str]:
    """Say that there are few examples, if there are."""
    if count >= FEW_EXAMPLES:
        return []
    examples = f"only {count:,} example{'s' if count > 1 else ''}"
    if place:
        return [
            f"{examples}, and the {place}s of an example are not independent: scores of others may differ "
            "much; hold out more (data.test_fraction, --test)"
        ]
    low, _ = wilson_interval(1.0, count)
    return [
        f"{examples}: {count:,} of {count:,} right is consistent with an accuracy of {100 * low:.0f} %; "
        "hold out more (data.test_fraction, --test)"
    ]


def collapse_warning(references: Sequence[str], outputs: Sequence[str]) -> str:
    """Return a warning if the outputs have less than a tenth as many distinct texts as the references, else
    an empty string."""
    output_count, reference_count = len(set(outputs)), len(set(references))
    if COLLAPSE_RATIO * output_count >= reference_count:
        return ""
    return f"collapsed: only {output_count:,} different outputs, but {reference_count:,} different references"


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a text table with the first column left-aligned and the others right-aligned.

    A cell with line breaks goes on in the lines below. A column with such cells is left-aligned.
    """
    cells = [[cell.split("\n") for cell in row] for row in rows]
    columns = [*zip(*cells, strict=True)]
    widths = [max(len(line) for cell in column for line in cell) for column in columns]
    has_lines = [any(len(cell) > 1 for cell in column) for column in columns]
    align = [str.ljust if number == 0 or several else str.rjust for number, several in enumerate(has_lines)]
    written = [
        "  ".join(place(text, width) for place, text, width in zip(align, line, widths, strict=True))
        for row in cells
        for line in zip_longest(*row, fillvalue="")
    ]
    return "\n".join(line.rstrip() for line in written) if any(has_lines) else "\n".join(written)
