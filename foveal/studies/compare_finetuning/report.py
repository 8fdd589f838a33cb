"""A comparison of ways to fine-tune for people, for programs, and as a page."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from foveal.inspection.panels import Axis, Bars, Lines, NamedArray, Series, Table
from foveal.inspection.payload import Payload
from foveal.studies.compare_finetuning.advice import MANY_IMAGES_PER_CLASS
from foveal.studies.compare_finetuning.similarity import NEIGHBORS, FeatureSimilarity
from foveal.ui.console import format_duration

if TYPE_CHECKING:  # whose methods return the report
    from foveal.studies.compare_finetuning.comparison import FinetuningComparison

CAVEAT = "each way is trained once: intervals are over test images, and another seed differs, too"
WIDE = (6.4, 3.4)
"""Inches of the curves."""


def finetuning_json(comparison: "FinetuningComparison") -> dict[str, Any]:
    """Return the comparison for programs."""
    similarity = comparison.similarity
    return {
        "run": str(comparison.folder),
        "data": comparison.data,
        "images": similarity.images,
        "classes": similarity.classes,
        "neighbors": {"features": similarity.features, "pixels": similarity.pixels},
        "advice": similarity.advice.strategy,
        "verdict": comparison.verdict,
        "ways": {
            way: {
                "run": str(trained.path),
                "split": trained.split,
                "steps": trained.steps,
                "seconds": trained.seconds,
                "loss": trained.loss,
                "accuracy": trained.accuracy.accuracy,
                "accuracy_interval": [trained.accuracy.low, trained.accuracy.high],
            }
            for way, trained in comparison.ways.items()
        },
        "errors": dict(comparison.errors),
    }


def finetuning_payload(comparison: "FinetuningComparison") -> Payload:
    """Return the comparison as a table and pictures."""
    return Payload(
        "compare-finetuning",
        comparison.data,
        f"{comparison.data}: {comparison.verdict}",
        (_table(comparison), _accuracies(comparison), _curves(comparison)),
        CAVEAT,
        "exact",
        tuple(_explain(comparison.similarity)),
        finetuning_json(comparison),
    )


def _table(comparison: "FinetuningComparison") -> Table:
    advised = comparison.similarity.advice.strategy
    columns = ("way", "steps", "training", "accuracy", f"95 % interval ({comparison.split})", "run")
    rows = []
    for way, trained in comparison.ways.items():
        measured = trained.accuracy
        rows.append(
            (
                f"{way} *" if way == advised else way,
                f"{trained.steps:,}",
                format_duration(trained.seconds),
                f"{100 * measured.accuracy:.1f} %",
                f"{100 * measured.low:.1f} to {100 * measured.high:.1f}",
                str(trained.path),
            )
        )
    failed = [(way, "", "", "failed", "", error) for way, error in comparison.errors.items()]
    return Table("", columns, (*rows, *failed))


def _accuracies(comparison: "FinetuningComparison") -> Bars:
    values = np.array([[trained.accuracy.accuracy for trained in comparison.ways.values()]])
    axes = Axis("accuracy", ("accuracy",)), Axis("way", tuple(comparison.ways))
    return Bars(f"{comparison.split} accuracy", NamedArray(values, axes), high=1.0)


def _curves(comparison: "FinetuningComparison") -> Lines:
    series = tuple(
        Series(way, [at for at, _ in trained.curve], [loss for _, loss in trained.curve], color=number)
        for number, (way, trained) in enumerate(comparison.ways.items())
    )
    return Lines("validation loss", series, "seconds of training", "loss in nats", size=WIDE)


def _explain(similarity: FeatureSimilarity) -> Iterator[tuple[str, str]]:
    """Yield the two questions with the measured answers, and the advice (*) with the result that would refute
    it."""
    advice, each = similarity.advice, similarity.images / similarity.classes
    amount = "many" if advice.many_images else "few"
    limit = f"{MANY_IMAGES_PER_CLASS:,.0f} or more are many, by convention"
    yield "data", f"{similarity.images:,} training images, {each:,.0f} per class: {amount} ({limit})"
    by_features, by_pixels = f"{100 * similarity.features:.1f} %", f"{100 * similarity.pixels:.1f} %"
    votes = f"{by_features} correct by the run's features, {by_pixels} by pixels"
    word, half = ("similar", "at most half") if advice.features_transfer else ("different", "more than half")
    yield (
        "similarity",
        f"{NEIGHBORS} nearest images: {votes}: {word}, since features make {half} of the pixels' errors",
    )
    yield "advice", f"* {advice.text}; refuted if another way's interval lies above, also with other seeds"
