"""Cells that hold lists, and labels that are no classes."""

import re

import pytest

from foveal.core.errors import UserError
from foveal.data.core.classes import check_are_classes
from foveal.data.core.fields import as_words


@pytest.mark.parametrize("cell", ["['the', 'cat']", '["the", "cat"]', "the cat", ["the", "cat"]])
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
