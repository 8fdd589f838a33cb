"""The report of a comparison: what it concludes, and that each of its numbers stands in a table."""

import json
import re
from dataclasses import replace
from math import nan

import pytest

from foveal.inspection.files import payload_file
from foveal.inspection.panels import Lines, Table
from foveal.studies.compare.comparison import Comparison
from foveal.studies.compare.conclusions import conclusions, verdict
from foveal.studies.compare.report import comparison_json, comparison_payload
from tests.support.comparisons import comparison, with_sequences

CLEAR = {"slow": [1.50, 1.51, 1.52], "close": [1.501, 1.513, 1.519], "bad": [1.60, 1.61, 1.625]}
LOWER = "another is lower in one of them and not higher in the other"
NUMBER = re.compile(r"\d[\d.,]*\d|\d")


def cells(of: Comparison) -> set[str]:
    tables = [panel for panel in comparison_payload(of).panels if isinstance(panel, Table)]
    texts = [cell for table in tables for row in table.rows for cell in row]
    return {number for text in texts for number in NUMBER.findall(text)}


@pytest.mark.parametrize("losses", [CLEAR, {"a": [1.0, 1.1, 1.2], "b": [1.0, 1.1, nan]}])
def test_each_number_of_the_conclusions_stands_in_a_table(losses):
    of = comparison(**losses)
    numbers = {*NUMBER.findall(conclusions(of))}
    assert numbers
    assert numbers <= cells(of)


def test_says_which_models_differ():
    of = comparison(**CLEAR)
    assert verdict(of) == "slow has the lowest mean loss, and is told apart from bad only"
    text = conclusions(of)
    assert "close is indistinguishable from it (0.0010 more, p = 0.478)." in text
    assert "bad is worse (0.1017 more, p < 0.001)." in text
    assert f"close and bad are beaten in loss and training time: {LOWER}; slow is not." in text
    assert "By their means, no model is beaten in loss and FLOPs." in text


def test_a_cheaper_model_is_on_the_front_and_a_worse_one_beaten():
    of = comparison(cheap=[1.6, 1.61, 1.62], good=[1.5, 1.51, 1.52], dear=[1.7, 1.71, 1.72])
    assert [model.name for model in of.front("seconds")] == ["cheap", "good"]
    beaten = f"dear is beaten in loss and training time: {LOWER}; cheap and good are not."
    assert beaten in conclusions(of)
    assert verdict(of) == "good is best"


def test_models_that_are_equal_in_loss_and_cost_do_not_beat_each_other():
    first = comparison(one=[1.5, 1.51, 1.52]).models[0]
    equal = replace(first, plan=replace(first.plan, name="two"))
    worse = comparison(three=[1.7, 1.71, 1.72]).models[0]
    of = replace(comparison(one=[1.5, 1.51, 1.52]), models=(first, equal, worse))
    assert [model.name for model in of.front("flops")] == ["one", "two"]


def test_says_who_uses_far_context():
    of = with_sequences(comparison(**CLEAR))
    far = "bad gains most from far context, 0.0300 (from 5, against 3 to 4); it is 0.0100 for slow and 0.0200"
    assert far in conclusions(of)
    assert {*NUMBER.findall(conclusions(of))} <= cells(of)
    assert of.sequences is not None
    of.sequences.losses["bad"][5] = of.sequences.losses["close"][5] = of.sequences.losses["slow"][5] = 2.9
    assert "No model gains from far context (from 5, against 3 to 4)." in conclusions(of)


def test_a_report_without_losses_by_position_says_why():
    of = with_sequences(comparison(**CLEAR))
    assert of.sequences is not None
    errors = {"bad by position": "MemoryError: too little"}
    without = replace(of, sequences=replace(of.sequences, losses={}, runs={}, errors=errors))
    payload = comparison_payload(without)
    assert ("not measured", "bad by position: MemoryError: too little") in payload.facts
    assert [panel.title for panel in payload.panels if "by position" in panel.title] == []
    assert "far context" not in conclusions(without)


def test_two_seeds_have_no_interval_and_no_verdict():
    of = comparison(a=[1.0, 1.1, 1.2], b=[2.0, nan, 2.1])
    assert of.differences == []
    assert "Between a and b nothing can be said" in conclusions(of)
    assert comparison_json(of)["models"][1]["interval"] is None


def test_a_failed_seed_does_not_turn_the_conclusion_around():
    of = comparison(a=[1.0, 1.001, 0.999, 5.0], b=[1.5, 1.501, 1.499, nan])
    better = "better on the seeds that both have"
    assert verdict(of) == f"b has the lowest mean loss, but a is {better}"
    assert f"a is {better} (0.5000 less, p < 0.001)." in conclusions(of)
    assert {*NUMBER.findall(conclusions(of))} <= cells(of)
    unsure = comparison(a=[1.4, 1.0, 1.2, 5.0], b=[1.5, 1.2, 1.15, nan])
    assert "a is indistinguishable from it (0.0833 less, " in conclusions(unsure)


def test_failed_trainings_stand_in_the_table_of_trainings():
    of = comparison(a=[1.0, 1.1, 1.2], b=[nan, nan, nan])
    table = next(panel for panel in comparison_payload(of).panels if panel.title == "trainings")
    assert isinstance(table, Table)
    assert ("b, seed 0", "failed", "", "it was killed") in table.rows
    assert verdict(of) == "a alone was trained"


@pytest.mark.parametrize("suffix", [".png", ".html", ".json"])
def test_is_drawn_in_every_format(suffix):
    content = payload_file(comparison_payload(with_sequences(comparison(**CLEAR))), suffix)
    assert content
    if suffix == ".json":
        assert json.loads(content)["models"][0]["parameters"] == 123_456


def test_memory_is_drawn_in_the_unit_of_the_table():
    of = with_sequences(comparison(**CLEAR))
    panels = {panel.title: panel for panel in comparison_payload(of).panels}
    drawn = panels["MB of a training step"]
    assert isinstance(drawn, Lines)
    assert [*drawn.series[0].y] == [10.0, 10.0]
    table = panels[
        "tokens a second, memory of a step, and state of a row in generation, by length of the context"
    ]
    assert isinstance(table, Table)
    assert all("10.0 MB" in row and "10.0 kB" in row for row in table.rows)
