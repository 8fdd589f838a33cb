"""Answers to questions about images, of a known set, or written; those among choices are `ChoiceTarget`."""

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.classes import ClassIds
from foveal.data.core.rows import Row
from foveal.data.pairs.labels import ClassLabels, LabelTarget
from foveal.data.text.text_target import TextTarget

IGNORE_INDEX = -100
"""The number of an answer that training did not have; torch's cross-entropy leaves it out."""


class AnswerTarget(LabelTarget):
    """One of the answers that training has."""

    settings = ("data.answer",)
    field = "answer"

    def column(self, config: DataConfig) -> str:
        return config.answer

    def encode(self, row: Row, processor: ClassLabels, config: DataConfig) -> ClassIds | str:
        """Return the answer's number. An answer never seen can't be right, and has no loss."""
        numbers = processor.numbers(self.label_list(row))
        return np.array([IGNORE_INDEX]) if isinstance(numbers, str) else numbers


class WrittenAnswerTarget(TextTarget):
    """An answer, written token by token."""

    field = "answer"

    def __init__(self) -> None:
        super().__init__("answer")
        self.settings += ("data.target_tokenizer",)
