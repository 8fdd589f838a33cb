"""Intervals, lengths and worst examples of any score."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.metrics.intervals import bootstrap_interval, confidence_interval, wilson_interval
from foveal.metrics.labels import accuracy, confusion_matrix, macro_f1
from foveal.metrics.recognition import cer, exact_match, wer
from foveal.metrics.report import (
    FEW_EXAMPLES,
    collapse_warning,
    format_table,
    make_report,
    scores_by_length,
    worst_examples,
)
from foveal.metrics.score import MetricResult
from foveal.metrics.tags import entity_f1, tag_accuracy
from foveal.metrics.translation import bleu, chrf

ALL = [bleu, chrf, wer, cer, exact_match, accuracy, macro_f1]
REFERENCES = ["one two three four five", "six seven", "eight", "nine ten one two", "three", "a b c"] * 20
OUTPUTS = ["one two three four six", "six seven", "nine", "nine ten one three", "three", ""] * 20


def errors(wrong: int, count: int) -> MetricResult:
    return accuracy(["a"] * count, ["b"] * wrong + ["a"] * (count - wrong))


@pytest.mark.parametrize("metric", [bleu, chrf, wer, cer, exact_match])
def test_the_interval_holds_the_value(metric) -> None:
    score = metric(REFERENCES, OUTPUTS)
    low, high = bootstrap_interval(score, resamples=200)
    assert low < score.value < high
    assert (low, high) == bootstrap_interval(score, resamples=200)
    assert (low, high) != bootstrap_interval(score, resamples=200, seed=1)


@pytest.mark.parametrize("metric", [accuracy, macro_f1])
def test_the_interval_of_labels_holds_the_value(metric) -> None:
    score = metric(["a", "b", "c", "c"] * 50, ["a", "b", "c", "a"] * 40 + ["b", "c", "c", "a"] * 10)
    low, high = bootstrap_interval(score, resamples=200)
    assert low < score.value < high


def test_the_interval_is_that_of_a_share() -> None:
    """Of 400 right or wrong: the mean of a binomial, 1.96 deviations to each side."""
    low, high = bootstrap_interval(errors(80, 400), resamples=4000)
    reach = 1.96 * math.sqrt(0.2 * 0.8 / 400)
    assert low == pytest.approx(0.8 - reach, abs=0.005)
    assert high == pytest.approx(0.8 + reach, abs=0.005)


def test_scores_are_drawn_together() -> None:
    """The same draws for every metric: an error rate mirrors its share of successes."""
    right, wrong = exact_match(REFERENCES, OUTPUTS), accuracy(REFERENCES, OUTPUTS)
    assert bootstrap_interval(right) == bootstrap_interval(wrong)
    assert bootstrap_interval(errors(0, 5)) == (1, 1)


@pytest.mark.parametrize(
    ("right", "count", "expected"),
    # Values of R's binom.confint(right, count, methods="wilson").
    [(2, 2, (0.3424, 1.0)), (0, 10, (0.0, 0.2775)), (81, 263, (0.2553, 0.3662)), (1, 1, (0.2065, 1.0))],
)
def test_the_interval_of_a_share_is_wilsons(right: int, count: int, expected: tuple[float, float]) -> None:
    assert wilson_interval(right / count, count) == pytest.approx(expected, abs=5e-5)
    assert confidence_interval(errors(count - right, count)) == wilson_interval(right / count, count)


def test_no_interval_without_a_spread() -> None:
    """Where all resamples have the same score, an interval of no width would be a promise."""
    labels, texts = ["a", "b"] * 5, ["one two three four"] * 10
    assert confidence_interval(macro_f1(labels, labels)) is None
    assert confidence_interval(bleu(texts, texts)) is None
    report = make_report([accuracy(labels, labels), macro_f1(labels, labels)], [], labels, labels, labels)
    assert report.to_json()["macro_f1_interval"] is None
    assert report.table().splitlines()[2].split() == ["macro_f1", "1", "-", "10"]
    assert report.legend == ["-: no interval, since all resamples of these examples have the same score"]


def test_the_unit_of_the_interval_is_said_where_places_have_labels() -> None:
    """The words of a sentence are not independent, so sentences are drawn, and counted as few."""
    gold, tags = [["N", "V"]] * 6, [["N", "V"]] * 3 + [["V", "N"]] * 3
    texts = [" ".join(row) for row in gold]
    outputs = [" ".join(row) for row in tags]
    report = make_report([tag_accuracy(gold, tags)], [], texts, texts, outputs, place="word")
    (line,) = report.legend
    assert line.endswith("over resampled examples (n), since the words of an example are not independent")
    assert report.notes[0].startswith("only 6 examples, and the words of an example are not independent")
    low, high = report.intervals["accuracy"] or (0, 0)
    drawn = np.random.default_rng(1).binomial(6, 0.5, 20_000) / 6  # whole sentences are right or wrong
    assert (low, high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.01)


@pytest.mark.parametrize(("count", "told"), [(1, True), (FEW_EXAMPLES - 1, True), (FEW_EXAMPLES, False)])
def test_few_examples_are_told(count: int, told: bool) -> None:
    texts = ["a"] * count
    report = make_report([accuracy(texts, texts)], [], texts, texts, texts)
    assert [f"only {count:,} example" in note for note in report.notes] == [True] * told
    assert report.to_json().get("notes", []) == [*report.notes]


def test_the_worst_are_those_with_the_highest_loss() -> None:
    sources, right, outputs = ["1", "2", "3", "4"], ["a"] * 4, ["b", "a", "b", "b"]
    losses = [1.0, 9.0, math.inf, 2.0]
    report = make_report([accuracy(right, outputs)], [], sources, right, outputs, losses=losses)
    assert [example.source for example in report.worst] == ["3", "4", "1"]
    assert (report.worst_by, report.worst[1].to_json()["loss"]) == ("loss", 2.0)
    unranked = make_report([accuracy(right, outputs)], [], sources, right, outputs)
    assert ([example.source for example in unranked.worst], unranked.worst_by) == (
        ["1", "3", "4"],
        "accuracy",
    )


def test_ranges_of_length_leave_out_a_score_of_fewer_examples() -> None:
    scores = [errors(0, 4), replace(errors(0, 2), name="told")]
    texts = ["a", "b", "c", "d"]
    report = make_report(scores, [5, 5, 6, 6], texts, texts, texts)
    assert [[*part.values] for part in report.by_length] == [[scores[0].name]] * 2
    assert report.to_json()["told"] == scores[1].value
    assert "told" not in report.table().split("\n\n")[1]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=200))
def test_ranges_of_length_are_disjoint_and_whole(lengths: list[int]) -> None:
    score = accuracy(["a"] * len(lengths), ["a" if size % 2 else "b" for size in lengths])
    bins = scores_by_length([score], lengths)
    assert 1 <= len(bins) <= 8
    assert sum(part.examples for part in bins) == len(lengths)
    assert all(one.longest < two.shortest for one, two in pairwise(bins))
    for part in bins:
        inside = [size for size in lengths if part.shortest <= size <= part.longest]
        assert part.examples == len(inside)
        assert {part.shortest, part.longest} <= set(inside)
        assert part.values["accuracy"] == pytest.approx(np.mean([size % 2 for size in inside]))


def test_different_lengths_part_evenly() -> None:
    assert [part.examples for part in scores_by_length([errors(0, 60)], list(range(60)))] == [10] * 6


def test_few_lengths_have_one_each() -> None:
    lengths = [20] * 9 + [50] + [100] * 5 + [1000]
    bins = scores_by_length([errors(0, len(lengths))], lengths)
    assert [(part.shortest, part.longest, part.examples) for part in bins] == [
        (20, 20, 9),
        (50, 50, 1),
        (100, 100, 5),
        (1000, 1000, 1),
    ]


def test_the_worst_come_first() -> None:
    sources = [f"source {i}" for i in range(6)]
    found = worst_examples(wer(REFERENCES[:6], OUTPUTS[:6]), sources, REFERENCES, OUTPUTS, n=3)
    assert [example.row for example in found] == [2, 5, 3]
    assert [example.score for example in found] == [1, 1, 0.25]
    assert (found[1].source, found[1].reference, found[1].output) == ("source 5", "a b c", "")
    found = worst_examples(bleu(REFERENCES[:6], OUTPUTS[:6]), sources, REFERENCES, OUTPUTS)
    assert [example.score for example in found] == sorted(example.score for example in found)
    assert [example.output for example in found if example.output == example.reference] == []
    assert len(found) == 4


def test_a_report_is_json_and_a_table() -> None:
    scores = [bleu(REFERENCES, OUTPUTS), exact_match(REFERENCES, OUTPUTS)]
    lengths = [len(reference.split()) for reference in REFERENCES]
    report = make_report(scores, lengths, REFERENCES, REFERENCES, OUTPUTS)
    content = report.to_json()
    assert json.loads(json.dumps(content)) == content
    names = ["bleu", "bleu_interval", "bleu_signature", "exact", "exact_interval", "by_length", "worst"]
    assert list(content) == names
    assert content["exact"] == pytest.approx(1 / 3)
    assert content["bleu_interval"][0] < content["bleu"] < content["bleu_interval"][1]
    assert content["by_length"][0] == {
        "shortest": 1,
        "longest": 1,
        "examples": 40,
        "bleu": 0,
        "exact": 0.5,
    }
    assert content["worst"][0] == {
        "row": 2,
        "score": 0,
        "source": "eight",
        "reference": "eight",
        "output": "nine",
    }
    lines = report.table().split("\n")
    assert lines[0].split() == ["score", "value", "95", "%", "interval", "n"]
    assert lines[2].split()[:2] == ["exact", "0.3333"]
    assert lines[2].split()[-1] == "120"
    assert lines[4].split() == ["length", "examples", "bleu", "exact"]
    assert lines[5].split() == ["1", "40", "0", "0.5"]


def test_a_collapse_is_told() -> None:
    """Where less than a tenth as many different texts are written as are right."""
    right = [f"text {n}" for n in range(40)]
    few, some = [f"{n % 3}" for n in range(40)], [f"{n % 4}" for n in range(40)]
    assert collapse_warning(right, few) == "collapsed: only 3 different outputs, but 40 different references"
    assert collapse_warning(right, some) == collapse_warning(few, few) == collapse_warning(right, right) == ""
    report = make_report([exact_match(right, few)], [], right, right, few)
    assert report.to_json()["alarm"] == report.warning == collapse_warning(right, few)
    assert "alarm" not in make_report([exact_match(right, some)], [], right, right, some).to_json()


def test_one_example_has_no_interval() -> None:
    report = make_report([exact_match(["a"], ["a"])], [1], ["a"], ["a"], ["a"])
    assert "exact_interval" not in report.to_json()
    lines = report.table("length (words)").splitlines()
    assert lines[0].split() == ["score", "value", "n"]
    assert lines[3].split() == ["length", "(words)", "examples", "exact"]


@pytest.mark.parametrize("metric", [*ALL, confusion_matrix, tag_accuracy, entity_f1])
def test_no_examples_is_one_plain_error(metric) -> None:
    with pytest.raises(
        UserError, match=r"^there are no examples to score: give data with at least one usable row"
    ):
        metric([], [])
    with pytest.raises(ValueError, match="1 outputs for 2 references"):
        metric(["a", "b"], ["a"])


def test_a_cell_of_a_table_may_have_several_lines() -> None:
    rows = [("step", "text"), ("10", "one\n\nthree"), ("9", "last")]
    assert format_table(rows) == "step  text\n10    one\n\n      three\n9     last"
    assert format_table([("name", "n"), ("a", "10")]) == "name   n\na     10"
