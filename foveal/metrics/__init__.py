"""Metrics as published, with confidence intervals, scores by length, and the worst examples.

Every metric is a function of lists, and a name of this module, such as ``foveal.metrics.bleu``. A name is
imported when it is first used. The examples in the docstrings need `from foveal import metrics`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES_BY_MODULE = {
    "foveal.metrics.calibration": ("calibration_error",),
    "foveal.metrics.captions": ("caption_words", "cider"),
    "foveal.metrics.intervals": ("bootstrap_interval", "confidence_interval", "wilson_interval"),
    "foveal.metrics.labels": ("ConfusionMatrix", "accuracy", "confusion_matrix", "macro_f1"),
    "foveal.metrics.recognition": ("cer", "exact_match", "wer"),
    "foveal.metrics.report": ("make_report",),
    "foveal.metrics.score": ("MetricResult", "error_rate", "success_rate"),
    "foveal.metrics.student_t": ("mean_interval", "t_p_value", "t_quantile"),
    "foveal.metrics.tags": ("entity_f1", "entity_spans", "tag_accuracy", "tag_macro_f1"),
    "foveal.metrics.translation": ("bleu", "chrf"),
}
_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

if TYPE_CHECKING:
    from foveal.metrics.calibration import calibration_error as calibration_error
    from foveal.metrics.captions import caption_words as caption_words
    from foveal.metrics.captions import cider as cider
    from foveal.metrics.intervals import bootstrap_interval as bootstrap_interval
    from foveal.metrics.intervals import confidence_interval as confidence_interval
    from foveal.metrics.intervals import wilson_interval as wilson_interval
    from foveal.metrics.labels import ConfusionMatrix as ConfusionMatrix
    from foveal.metrics.labels import accuracy as accuracy
    from foveal.metrics.labels import confusion_matrix as confusion_matrix
    from foveal.metrics.labels import macro_f1 as macro_f1
    from foveal.metrics.recognition import cer as cer
    from foveal.metrics.recognition import exact_match as exact_match
    from foveal.metrics.recognition import wer as wer
    from foveal.metrics.report import make_report as make_report
    from foveal.metrics.score import MetricResult as MetricResult
    from foveal.metrics.score import error_rate as error_rate
    from foveal.metrics.score import success_rate as success_rate
    from foveal.metrics.student_t import mean_interval as mean_interval
    from foveal.metrics.student_t import t_p_value as t_p_value
    from foveal.metrics.student_t import t_quantile as t_quantile
    from foveal.metrics.tags import entity_f1 as entity_f1
    from foveal.metrics.tags import entity_spans as entity_spans
    from foveal.metrics.tags import tag_accuracy as tag_accuracy
    from foveal.metrics.tags import tag_macro_f1 as tag_macro_f1
    from foveal.metrics.translation import bleu as bleu
    from foveal.metrics.translation import chrf as chrf


def __dir__() -> list[str]:
    return sorted(_MODULES)


def __getattr__(name: str) -> Any:
    # Some metrics import large libraries, which others do without.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'foveal.metrics' has no attribute {name!r}")
