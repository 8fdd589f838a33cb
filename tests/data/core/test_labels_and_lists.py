"""Cells that hold lists, and labels that are no classes."""

import re

import pytest

from foveal.core.errors import UserError
from foveal.data.core.classes import check_are_classes
from foveal.data.core.fields import as_words
from foveal.data.core.rows import Row
from foveal.data.pairs.labels import LabelEachTarget, LabelTarget


@pytest.mark.parametrize(
    "cell", ["['the', 'cat']", '["the", "cat"]', "the cat", ["the", "cat"], "['the' 'cat']"]
)
def test_lists_in_cells_are_lists(cell: object) -> None:
    assert as_words({"tokens": cell}) == {"tokens": ["the", "cat"]}


def test_what_only_begins_like_a_list() -> None:
    assert as_words({"tokens": "[ x ] so"}) == {"tokens": ["[", "x", "]", "so"]}
    assert "begins like a list" in str(as_words({"tokens": "['the' cat]"}))


NUMBERS = [str(number / 7) for number in range(60)]
CODES = [str(number % 100) for number in range(1000)]


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (NUMBERS, "60 different numbers as labels of 60 rows"),
        ([str(12_345 * number) for number in range(40)], "40 different numbers"),
        (["a", "b", "a,b"] * 9, "'a,b' looks like several labels"),
        (["['a', 'b']", "['a']"], "looks like several labels"),
    ],
)
def test_labels_that_are_no_classes_are_refused(labels: list[str], why: str) -> None:
    with pytest.raises(UserError, match=re.escape(why)):
        check_are_classes("rows.csv", labels)


@pytest.mark.parametrize("labels", [["0.5", "1", "1.5"] * 9, CODES, ["Paris, F", "Rome, I"] * 9, ["1", "2"]])
def test_codes_and_names_are_classes(labels: list[str]) -> None:
    check_are_classes("rows.csv", labels)


@pytest.mark.parametrize("labels", [["a|b", "a", "b", "c|a"], ["a,b", "b,c", "c,a", "d"], ["a;b", "b", "a"]])
def test_labels_that_share_parts_are_refused(labels: list[str]) -> None:
    with pytest.raises(UserError, match=r"looks like several labels.*to keep it as a class"):
        check_are_classes("rows.csv", labels * 9)


@pytest.mark.parametrize(
    "labels", [["Home, Kitchen", "Home, Garden"], ["Sports|Ball", "Sports", "News|World"]]
)
def test_labels_of_levels_are_classes(labels: list[str]) -> None:
    check_are_classes("rows.csv", labels * 9)


@pytest.mark.parametrize("label", ["nan", "NaN", "null", "NULL", "<NA>", "#N/A"])
def test_labels_of_programs_for_missing_ones_are_none(label: str) -> None:
    row = Row("a.csv, line 2", {"label": label})
    assert f"the label is '{label}', which is taken as missing" in LabelTarget().missing_error(row)
    tags = Row("a.csv, line 2", {"labels": [label]})
    assert not LabelEachTarget().missing_error(tags)


@pytest.mark.parametrize(
    ("labels", "doubtful"),
    [
        (["None", "pos", "neg"], True),
        (["None", "Mild", "Severe"], False),
        (["none", "favor", "against"], False),
        (["NA", "DE", "ZA"], False),
        (["NA", "cat", "dog"], True),
        (["N/A", "1", "2"], True),
        (["n/a", "yes", "no"], False),
        (["None", "NA"], True),
    ],
)
def test_words_for_missing_labels_are_classes_if_they_are_spelled_as_others(
    labels: list[str], doubtful: bool
) -> None:
    if not doubtful:
        check_are_classes("rows.csv", labels * 9)
        return
    with pytest.raises(UserError, match="may be a class, or mean that there is none"):
        check_are_classes("rows.csv", labels * 9)
