"""Targets of questions about images: answers from a known set, generated answers, and choices of a row."""

from typing import Any

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.classes import ClassIds
from foveal.data.core.examples import Column
from foveal.data.core.rows import Row
from foveal.data.pairs.labels import LabelProcessor, LabelTarget
from foveal.data.pairs.nothing import NoTargetProcessor, UnfittedTarget
from foveal.data.text.text_target import TextTarget
from foveal.tasks.vqa.data_settings import vqa_data

IGNORE_INDEX = -100
"""The id of answers that training does not have. torch's cross-entropy ignores it."""


class AnswerTarget(LabelTarget):
    """An answer from the set of answers in the training split."""

    settings = ("data.answer",)
    field = "answer"

    def column(self, config: DataConfig) -> str:
        return vqa_data(config).answer

    def encode(self, row: Row, processor: LabelProcessor, config: DataConfig) -> ClassIds | str:
        """Return the answer's id. An answer unseen in training counts as wrong, without a loss."""
        ids = processor.encode(self.label_list(row))
        return np.array([IGNORE_INDEX]) if isinstance(ids, str) else ids


class WrittenAnswerTarget(TextTarget):
    """An answer, generated token by token."""

    field = "answer"

    def __init__(self) -> None:
        super().__init__("answer")
        self.settings += ("data.target_tokenizer",)


class ChoiceTarget(UnfittedTarget):
    """An answer that is one of the row's `choices`. Rows share no classes, so there is nothing to fit."""

    settings = ("data.answer",)
    field = "answer"

    def column(self, config: DataConfig) -> str:
        return vqa_data(config).answer

    def encode(self, row: Row, processor: NoTargetProcessor, config: DataConfig) -> int | str:
        answer, choices = row.fields["answer"], row.fields["choices"]
        if answer not in choices:
            return f"the answer '{answer}' is not among the choices; fix the row"
        return int(choices.index(answer))

    def columns(self, values: list[Any]) -> dict[str, Column]:
        return {"label": np.array(values, np.int64)}
