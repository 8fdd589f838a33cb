"""Scores of labels are those of scikit-learn's documentation, and what can be counted by hand."""

import tracemalloc

import numpy as np
import pytest

from foveal.metrics.labels import accuracy, confusion_matrix, macro_f1


def test_confusion_as_in_scikit_learns_documentation() -> None:
    """The example of `confusion_matrix`."""
    gold = ["cat", "ant", "cat", "cat", "ant", "bird"]
    found = confusion_matrix(gold, ["ant", "ant", "cat", "cat", "ant", "cat"])
    assert found.labels == ("ant", "bird", "cat")
    assert found.counts.tolist() == [[2, 0, 0], [0, 0, 1], [1, 0, 2]]


def test_by_class_as_in_scikit_learns_documentation() -> None:
    """The example of `classification_report`."""
    gold, found = ["0", "1", "2", "2", "2"], ["0", "0", "2", "2", "1"]
    rows = confusion_matrix(gold, found).per_class()
    assert [row.label for row in rows] == ["0", "1", "2"]
    assert [row.precision for row in rows] == pytest.approx([1 / 2, 0, 1])
    assert [row.recall for row in rows] == pytest.approx([1, 0, 2 / 3])
    assert [row.f1 for row in rows] == pytest.approx([2 / 3, 0, 0.8])
    assert [row.support for row in rows] == [1, 1, 3]
    assert macro_f1(gold, found).value == pytest.approx((2 / 3 + 0 + 0.8) / 3)
    assert accuracy(gold, found).value == 0.6


def test_who_is_most_often_taken_for_whom() -> None:
    gold, found = [*"aaaabbbc"], [*"abbcbaac"]
    assert confusion_matrix(gold, found).most_confused(2) == [("a", "b", 2, 0.5), ("b", "a", 2, 2 / 3)]
    assert confusion_matrix(gold, found).most_confused(9)[2:] == [("a", "c", 1, 0.25)]
    assert confusion_matrix(gold, gold).most_confused(9) == []
    table = confusion_matrix([*"abcde"], [*"bacdd"])  # mistakes: a 2, b 2, c 0, d 1, e 1
    assert [table.labels[number] for number in table.most_mistaken(3)] == ["a", "b", "d"]


def test_macro_f1_as_in_scikit_learns_documentation() -> None:
    """The example of `f1_score`: 0.27."""
    score = macro_f1(["0", "1", "2", "0", "1", "2"], ["0", "2", "1", "0", "0", "1"])
    assert score.value == pytest.approx(0.8 / 3)
    assert score.per_example.tolist() == [1, 0, 0, 1, 0, 0]


def test_a_selection_has_its_own_classes() -> None:
    score = macro_f1(["a", "a", "b", "c"], ["a", "b", "b", "a"])
    assert score.on_rows(np.array([0, 0, 2])) == 1
    assert score.on_rows(np.array([0, 1])) == pytest.approx((2 / 3 + 0) / 2)  # b is named, and never right
    assert accuracy(["a", "b"], ["a", "a"]).on_rows(np.array([0, 0, 1, 0])) == 0.75


def test_all_right_and_all_wrong() -> None:
    gold = ["a", "b", "a", "c"]
    for score in (accuracy, macro_f1):
        assert score(gold, gold).value == 1
        assert score(gold, ["x"] * 4).value == 0


def test_many_classes_take_little_memory() -> None:
    """No table of all pairs is made: of 40,000 classes it would be 12.8 GB."""
    gold = [str(number) for number in range(40_000)]
    tracemalloc.start()
    assert macro_f1(gold, ["0"] * len(gold)).value == pytest.approx(2 / 40_001 / 40_000)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
