"""The three ways to answer a question about an image: a label, a text, one of the row's own choices."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.classes import class_names, names_to_json, open_names
from foveal.data.core.examples import Column, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Row
from foveal.data.images.image_examples import LABELS
from foveal.data.text.length_limit import FILE as ROOM
from foveal.data.text.length_limit import Room, read_room
from foveal.data.text.special_tokens import Marks
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer
from foveal.tasks.vqa.vqa_examples import AskForm, AskInputs, open_asked, seen_of

UNSEEN = -100
"""The number of an answer that training did not have; torch's cross-entropy leaves it out."""


@dataclass(frozen=True)
class AnswerInputs(AskInputs):
    """And the known answers, in the order of their numbers."""

    labels: tuple[str, ...]

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    def files(self) -> dict[str, bytes]:
        return super().files() | {LABELS: names_to_json(self.labels)}


class AnswerForm(AskForm):
    """One of the answers that training has."""

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> AnswerInputs:
        answers, alike = (row.fields["answer"] for row in rows), "all questions to train on have the answer"
        labels = class_names(data, answers, alike, " (data.answer=NAME is the column)", taken.labels)
        if len(labels) > len(rows) // 2 and len(rows) > 4:
            raise UserError(
                f"{data}: {len(labels):,} answers to {len(rows):,} questions, too many to choose among: "
                "have them written (--task reply)"
            )
        return AnswerInputs(*seen_of(rows, config, taken), labels)

    def open_inputs(self, folder: Path) -> AnswerInputs:
        return AnswerInputs(*open_asked(folder), open_names(folder / LABELS))

    def right(self, row: Row, inputs: AnswerInputs, config: DataConfig) -> int:
        """An answer never seen can't be right, and has no loss."""
        return inputs.numbers.get(row.fields["answer"], UNSEEN)

    def columns(self, right: list[int]) -> dict[str, Column]:
        return {"label": np.array(right, np.int64)}


@dataclass(frozen=True)
class ReplyInputs(AskInputs):
    """And the tokenizer of the answers; `room` says how long those may become."""

    target: Tokenizer
    room: Room

    def files(self) -> dict[str, bytes]:
        text = {f"target/{FILE}": self.target.to_json().encode(), ROOM: self.room.to_json().encode()}
        return super().files() | text


class ReplyForm(AskForm):
    """Written token by token."""

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> ReplyInputs:
        answers = [row.fields["answer"] for row in rows]
        kind = config.tokenizer if config.target_tokenizer == "same" else config.target_tokenizer
        target = make_tokenizer(kind, config.vocabulary, answers)
        room = Room.of_texts(target, answers, config.longest)
        return ReplyInputs(*seen_of(rows, config, taken), target, room)

    def open_inputs(self, folder: Path) -> ReplyInputs:
        return ReplyInputs(*open_asked(folder), load_tokenizer(folder / "target"), read_room(folder))

    def right(self, row: Row, inputs: ReplyInputs, config: DataConfig) -> Ids | str:
        tokens = np.append(
            inputs.target.encode_known(row.fields["answer"])[0], Marks(inputs.target.size).stop
        )
        if len(tokens) > config.longest:
            return f"{len(tokens)} tokens, and data.longest={config.longest}: raise it to use the row"
        return tokens

    def columns(self, right: list[Ids]) -> dict[str, Column]:
        return {"target": Ragged.from_rows(right)}


class ChooseForm(AskForm):
    """One of the choices that each row brings."""

    asked = ("question", "choices")

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> AskInputs:
        return AskInputs(*seen_of(rows, config, taken))

    def open_inputs(self, folder: Path) -> AskInputs:
        return AskInputs(*open_asked(folder))

    def right(self, row: Row, inputs: AskInputs, config: DataConfig) -> int | str:
        answer, choices = row.fields["answer"], row.fields["choices"]
        if answer not in choices:
            return f"the answer '{answer}' is not among the choices; mend the row"
        return int(choices.index(answer))

    def columns(self, right: list[int]) -> dict[str, Column]:
        return {"label": np.array(right, np.int64)}
