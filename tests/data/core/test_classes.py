"""The order of classes: their names', or that of a run whose classes they are; and their numbers."""

from typing import SupportsIndex

import numpy as np
import pytest

from foveal.config import DataConfig
from foveal.data.core.classes import class_names
from foveal.data.core.rows import Row
from foveal.data.core.standardize import Statistics
from foveal.data.pairs import labels
from foveal.data.pairs.labels import LabelProcessor
from foveal.tasks.vqa.answer_targets import IGNORE_INDEX
from tests.support.pair_formats import ANSWERS, CLIP_LABEL
from tests.support.recorded_calls import record_calls

SEEN = Statistics.from_data([np.array([[0.0], [1.0]], np.float32)])


def test_known_classes_keep_their_numbers() -> None:
    labels = ["b", "a", "b"]
    assert class_names("data", labels, "all") == ("a", "b")
    assert class_names("data", labels, "all", known=("b", "a")) == ("b", "a")
    assert class_names("data", labels, "all", known=("b", "a", "c")) == ("a", "b")


class Unsearched(tuple[str, ...]):
    """Names that nobody is to go through for each row."""

    def index(self, value: object, start: SupportsIndex = 0, stop: SupportsIndex = 0) -> int:
        raise AssertionError

    def __contains__(self, value: object) -> bool:
        raise AssertionError


def test_rows_are_numbered_by_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that many rows of many classes take no longer than both."""
    rows = [Row(f"line {number}", {"answer": name, "label": name}) for number, name in enumerate("bcab")]
    answers = LabelProcessor(Unsearched("abd"))
    found = [ANSWERS.target.encode(row, answers, DataConfig()) for row in rows]
    assert np.concatenate(found).tolist() == [1, IGNORE_INDEX, 0, 1]
    tables = record_calls(monkeypatch, labels, "make_label_encoder")
    classes = LabelProcessor(("a", "b", "d"))
    numbers = [CLIP_LABEL.target.encode(row, classes, DataConfig()) for row in rows]
    assert numbers[1] == "the label 'c' is not among those of training"
    assert [number.tolist() for number in numbers if not isinstance(number, str)] == [[1], [0], [1]]
    assert len(tables) == 1
