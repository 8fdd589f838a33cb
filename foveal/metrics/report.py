"""How sure a score is, where it is good and bad, and the examples it is worst on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from foveal.metrics.score import MetricResult

MAX_LENGTH_BINS = 6
"""Into at most this many ranges of length are examples parted."""
COLLAPSE_RATIO = 10
"""So many times as many different answers are right as were found, where that is told."""
MAX_UNBINNED_LENGTHS = 8
"""So many different lengths are not parted into ranges."""
ConfidenceInterval = tuple[float, float]


def bootstrap_interval(score: MetricResult, resamples: int = 1000, seed: int = 0) -> ConfidenceInterval:
    """The 95 % percentile interval over resampled examples (Efron 1979; for BLEU: Koehn 2004).

    What is drawn depends on `seed` and the number of examples alone: metrics, and models on the same
    examples, are compared on the same draws.
    """
    generator, count = np.random.default_rng(seed), len(score.per_example)
    values = [score.on_rows(generator.integers(count, size=count)) for _ in range(resamples)]
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    return low, high


@dataclass(frozen=True)
class LengthBin:
    """The examples whose source is `shortest` to `longest` long; `values` has each metric on them."""

    shortest: int
    longest: int
    examples: int
    values: dict[str, float]


def scores_by_length(scores: Sequence[MetricResult], lengths: Sequence[int]) -> list[LengthBin]:
    """The scores in ranges of length that hold about as many examples each; few lengths have one each.

    A score whose examples are fewer, since each is several rows with a length, is left out.
    """
    sizes = np.asarray(lengths)
    ends = np.unique(sizes)
    if len(ends) > MAX_UNBINNED_LENGTHS:
        ends = np.unique(
            np.quantile(sizes, np.arange(1, MAX_LENGTH_BINS) / MAX_LENGTH_BINS, method="inverted_cdf")
        )
    numbers = np.searchsorted(ends, sizes)
    bins = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    return [
        LengthBin(
            int(sizes[rows].min()),
            int(sizes[rows].max()),
            len(rows),
            {score.name: score.on_rows(rows) for score in scores if len(score.per_example) == len(sizes)},
        )
        for rows in bins
    ]


@dataclass(frozen=True)
class ScoredExample:
    """`row` counts from 0 in the order in which examples were scored."""

    row: int
    score: float
    source: str
    reference: str
    output: str


def worst_examples(
    score: MetricResult,
    sources: Sequence[str],
    references: Sequence[str],
    outputs: Sequence[str],
    n: int = 20,
) -> list[ScoredExample]:
    """The n examples with the worst score, worst first, equal ones in their order; those that are right are
    not among them."""
    badness = -score.per_example if score.higher_is_better else score.per_example
    ordered = np.argsort(-badness, kind="stable").tolist()
    rows = [row for row in ordered if outputs[row] != references[row]][:n]
    return [
        ScoredExample(row, float(score.per_example[row]), sources[row], references[row], outputs[row])
        for row in rows
    ]


@dataclass(frozen=True)
class Report:
    """Scores, by their names the intervals, by length, and the worst examples by the first score.

    A single example has no intervals.
    """

    scores: tuple[MetricResult, ...]
    intervals: dict[str, ConfidenceInterval]
    by_length: list[LengthBin]
    worst: list[ScoredExample]
    warning: str = ""
    """What the scores hide."""

    def to_json(self) -> dict[str, Any]:
        """{"bleu": 31.2, "bleu_interval": [30.1, 32.3], "bleu_signature": "...", "by_length": [...], ...}"""
        content: dict[str, Any] = {}
        for score in self.scores:
            content[score.name] = score.value
            if score.name in self.intervals:
                content[f"{score.name}_interval"] = list(self.intervals[score.name])
            if score.signature:
                content[f"{score.name}_signature"] = score.signature
        content["by_length"] = [
            {"shortest": part.shortest, "longest": part.longest, "examples": part.examples, **part.values}
            for part in self.by_length
        ]
        content["worst"] = [asdict(example) for example in self.worst]
        return content | ({"alarm": self.warning} if self.warning else {})

    def table(self, length: str = "length") -> str:
        """For people: a line a score, then a line a range of `length`, which may say its unit."""
        names = [*self.by_length[0].values] if self.by_length else []
        head = ["score", "value", *(["95 % interval"] if self.intervals else [])]
        between = {name: [f"{low:.4g} to {high:.4g}"] for name, (low, high) in self.intervals.items()}
        scores = [[score.name, f"{score.value:.4g}", *between.get(score.name, [])] for score in self.scores]
        lengths = [
            [
                f"{part.shortest} to {part.longest}" if part.shortest < part.longest else f"{part.longest}",
                str(part.examples),
                *(f"{part.values[name]:.4g}" for name in names),
            ]
            for part in self.by_length
        ]
        tables = [[head, *scores], *([[[length, "examples", *names], *lengths]] if lengths else [])]
        return "\n\n".join(map(format_table, tables))


def make_report(
    scores: Sequence[MetricResult],
    lengths: Sequence[int],
    sources: Sequence[str],
    references: Sequence[str],
    outputs: Sequence[str],
    seed: int = 0,
) -> Report:
    """`lengths` (N,) are those of the sources, in their own units: words, characters, frames; or there are
    none, where all sources are alike."""
    return Report(
        tuple(scores),
        {score.name: bootstrap_interval(score, seed=seed) for score in scores if len(sources) > 1},
        scores_by_length(scores, lengths) if lengths else [],
        worst_examples(scores[0], sources, references, outputs),
        collapse_warning(references, outputs),
    )


def collapse_warning(references: Sequence[str], outputs: Sequence[str]) -> str:
    """A line that says so if a model writes less than a tenth as many different texts as are right."""
    found, right = len(set(outputs)), len(set(references))
    if COLLAPSE_RATIO * found >= right:
        return ""
    return f"collapsed: only {found:,} different outputs, where {right:,} different ones are right"


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])) for row in rows)
    return "\n".join("  ".join(line) for line in lines)
