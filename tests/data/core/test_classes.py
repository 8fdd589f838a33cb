"""The order of classes: their names', or that of a run whose classes they are; and their numbers."""

from typing import SupportsIndex

import numpy as np
import pytest

from foveal.config import DataConfig
from foveal.data.core.classes import class_names
from foveal.data.core.rows import Row
from foveal.data.core.standardize import Statistics
from foveal.data.images import image_examples
from foveal.data.images.image_examples import ImageClassificationProcessor
from foveal.data.text.tokenizers import ByteTokenizer
from foveal.data.video.clip_examples import VideoClassificationFormat
from foveal.tasks.vqa.answer_formats import IGNORE_INDEX, VQAClassificationFormat, VQAClassificationProcessor

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
    inputs = VQAClassificationProcessor(SEEN, 8, ByteTokenizer(), False, Unsearched("abd"))
    found = [VQAClassificationFormat().reference(row, inputs, DataConfig()) for row in rows]
    assert found == [1, IGNORE_INDEX, 0, 1]
    tables, make_label_encoder = [], image_examples.make_label_encoder
    monkeypatch.setattr(
        image_examples, "make_label_encoder", lambda names: tables.append(names) or make_label_encoder(names)
    )
    clips = ImageClassificationProcessor(SEEN, ("a", "b", "d"), 8)
    numbers = [VideoClassificationFormat().numbers(row, clips, DataConfig()) for row in rows]
    assert numbers[1] == "the label 'c' is not among those of training"
    assert [number.tolist() for number in numbers if not isinstance(number, str)] == [[1], [0], [1]]
    assert len(tables) == 1
