"""The metrics that a config names beside those of its task."""

from collections.abc import Iterable, Sequence
from typing import Any

from foveal.metrics.registry import METRICS
from foveal.metrics.score import MetricResult
from foveal.plugins.part_settings import named_parts, part_settings
from foveal.tasks.facts import ScoredSettings, TaskSettings


def check_metrics(settings: TaskSettings, target: str) -> None:
    """Check that the metrics that the settings name compare what the task predicts.

    Raises: ValueError: a metric compares something else; the error names those that fit.
    """
    for part in _metrics(settings):
        if part.target != target:
            fitting = ", ".join(name for name, metric in METRICS.items() if metric.target == target)
            words = {"label": "labels", "labels": "labels of places", "text": "texts"}
            raise ValueError(
                f"task.metrics={part.name} compares {words[part.target]}, and task.name={settings.name} "
                f"predicts {words.get(target, target)}: set it to some of {fitting}"
            )


def named_scores(
    settings: TaskSettings,
    references: Sequence[Any],
    outputs: Sequence[Any],
    known: Iterable[MetricResult],
) -> list[MetricResult]:
    """Return the scores of the metrics that the settings name, without those that are `known`."""
    if not isinstance(settings, ScoredSettings):
        return []
    sections, names = part_settings(settings, "task"), {score.name for score in known}
    scores = [
        metric(references, outputs, dict(sections[metric.name.replace("-", "_")]))
        for metric in _metrics(settings)
    ]
    return [score for score in scores if score is not None and score.name not in names]


def _metrics(settings: TaskSettings) -> list[Any]:
    return [part.part for part in named_parts(settings, "task") if part.field == "metrics"]
