"""Metrics by name: `task.metrics`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.metrics import labels, recognition, tags, translation
from foveal.metrics.score import MetricResult, RowIndices
from foveal.plugins.constructor_settings import settings_of_constructor
from foveal.plugins.registry import Registry, file_of

Registered = TypeVar("Registered")
Target = Literal["label", "labels", "text"]


@dataclass(frozen=True)
class Metric:
    """A metric that a config may name.

    `function` gets references and outputs, and its settings. It returns a number for each example, whose mean
    is the metric, or a `MetricResult`, or None if it says nothing about such examples.
    """

    name: str
    function: Callable[..., Any]
    Settings: type[StrictModel]
    target: Target
    """What it compares: labels, a label for each place, or texts."""
    higher_is_better: bool

    def __call__(
        self, references: Sequence[Any], outputs: Sequence[Any], settings: Mapping[str, Any]
    ) -> MetricResult | None:
        """Return the metric on examples.

        Raises: UserError: the function does not return a number for each example.
        """
        result = self.function(references, outputs, **settings)
        if result is None or isinstance(result, MetricResult):
            return result
        each = np.asarray(result, np.float64)
        if each.shape != (len(references),):
            raise UserError(
                f"{file_of(self.function.__module__)}: {self.function.__name__} returned {each.size} numbers "
                f"for {len(references)} examples; a metric returns one for each, or a MetricResult"
            )

        def mean(rows: RowIndices) -> float:
            return float(each[rows].mean())

        name = self.name.replace("-", "_")
        return MetricResult(name, float(each.mean()), each, mean, self.higher_is_better)


def _metric(name: str, source: Any, target: Target = "text", higher_is_better: bool = True) -> Metric:
    settings = settings_of_constructor(source, ("references", "outputs"))
    return Metric(name, source, settings, target, higher_is_better)


METRICS: Registry[Metric] = Registry("metric", adapt=_metric, reserved={"name", "metrics"})


def register_metric(
    name: str, *, target: Target, higher_is_better: bool = True
) -> Callable[[Registered], Registered]:
    """Return a decorator that registers a function of references and outputs, for `task.metrics=NAME`.

    `target` is what the tasks predict whose outputs the metric compares: `label`, `labels` (a list for each
    example) or `text`. The function returns a number for each example, whose mean is the metric, or a
    `foveal.metrics.score.MetricResult`. Its other arguments are settings, which need types and defaults.

    Raises: UserError: another metric has this name.
    """
    return METRICS.decorator(name, partial(_metric, target=target, higher_is_better=higher_is_better))


OWN: dict[Target, dict[str, Callable[..., Any]]] = {
    "label": {"accuracy": labels.accuracy, "macro-f1": labels.macro_f1},
    "labels": {
        "tag-accuracy": tags.tag_accuracy,
        "tag-macro-f1": tags.tag_macro_f1,
        "entity-f1": tags.entity_f1,
    },
    "text": {
        "exact-match": recognition.exact_match,
        "wer": recognition.wer,
        "cer": recognition.cer,
        "bleu": translation.bleu_if_meaningful,
        "chrf": translation.chrf,
    },
}
"""Our metrics by what they compare."""
for target, functions in OWN.items():
    for own, function in functions.items():
        METRICS.add(own, function, __name__, partial(_metric, target=target))
