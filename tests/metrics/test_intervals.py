"""An interval contains its score, for every metric that has one."""

import random
from collections.abc import Callable

import pytest

from foveal import metrics
from foveal.metrics.score import MetricResult

WORDS, TAGS = ["a", "b", "c", "d", "e", "f"], ["O", "B-x", "I-x", "B-y"]


def changed(names: list[str], known: list[str], draw: random.Random) -> list[str]:
    return [name if draw.random() < 0.7 else draw.choice(known) for name in names]


def labels(metric: Callable[..., MetricResult], rows: int, draw: random.Random) -> MetricResult:
    correct = draw.choices(WORDS, k=rows)
    return metric(correct, changed(correct, WORDS, draw))


def texts(metric: Callable[..., MetricResult], rows: int, draw: random.Random) -> MetricResult:
    correct = [draw.choices(WORDS, k=draw.randint(2, 9)) for _ in range(rows)]
    given = [changed(words, WORDS, draw) for words in correct]
    return metric([" ".join(words) for words in correct], [" ".join(words) for words in given])


def captions(metric: Callable[..., MetricResult], rows: int, draw: random.Random) -> MetricResult:
    correct = [draw.choices(WORDS, k=draw.randint(2, 9)) for _ in range(rows)]
    return metric([[words] for words in correct], [changed(words, WORDS, draw) for words in correct])


def tags(metric: Callable[..., MetricResult], rows: int, draw: random.Random) -> MetricResult:
    correct = [draw.choices(TAGS, k=draw.randint(2, 8)) for _ in range(rows)]
    return metric(correct, [changed(row, TAGS, draw) for row in correct])


METRICS: dict[str, Callable[..., MetricResult]] = {
    **dict.fromkeys(("accuracy", "macro_f1"), labels),
    **dict.fromkeys(("bleu", "cer", "chrf", "exact_match", "wer"), texts),
    **dict.fromkeys(("entity_f1", "tag_accuracy", "tag_macro_f1"), tags),
    "cider": captions,
}


@pytest.mark.parametrize("name", METRICS)
def test_an_interval_contains_its_score(name: str) -> None:
    for rows in (3, 20):
        score = METRICS[name](getattr(metrics, name), rows, random.Random(rows))
        interval = metrics.confidence_interval(score)
        assert interval is not None or rows == 3
        assert interval is None or interval[0] <= score.value <= interval[1]


def test_the_calibration_error_has_no_interval() -> None:
    """All resamples of a model without an error have one."""
    score = metrics.calibration_error([[0.75]] * 41, [[row % 4 > 0] for row in range(40)] + [[True]])
    assert score.value < 0.01
    assert metrics.confidence_interval(score) is None
