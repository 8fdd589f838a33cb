"""Targets of questions about images: answers of a known set, and written answers."""

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.classes import ClassIds
from foveal.data.core.rows import Row
from foveal.data.pairs.labels import LabelProcessor, LabelTarget
from foveal.data.text.text_target import TextTarget

IGNORE_INDEX = -100
"""The id of answers that training does not have. torch's cross-entropy ignores it."""


class AnswerTarget(LabelTarget):
    """One of the answers of the training split."""

    settings = ("data.answer",)
    field = "answer"

    def column(self, config: DataConfig) -> str:
        return config.answer

    def encode(self, row: Row, processor: LabelProcessor, config: DataConfig) -> ClassIds | str:
        """Return the answer's id. An answer that training does not have is never correct, and has no loss."""
        ids = processor.encode(self.label_list(row))
        return np.array([IGNORE_INDEX]) if isinstance(ids, str) else ids


class WrittenAnswerTarget(TextTarget):
    """An answer, written token by token."""

    field = "answer"

    def __init__(self) -> None:
        super().__init__("answer")
        self.settings += ("data.target_tokenizer",)
