"""Questions about images as examples: what is read is the same however they are answered."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.examples import Column, Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed, in_words
from foveal.data.core.standardize import Statistics, reading
from foveal.data.images.image_examples import Pictures, open_seen, seen_files, statistics_of
from foveal.data.text.special_tokens import framed
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer
from foveal.tasks.vqa.question_files import read_asked

HISTORY = "history.json"
Seen = tuple[Statistics, int, Tokenizer, bool]


@dataclass(frozen=True)
class AskInputs:
    """What a model sees of images, the statistics of their channels and the `size` of the square in pixels;
    the tokenizer of the texts it reads; and whether it reads a `history` of what was said before."""

    statistics: Statistics
    size: int
    text: Tokenizer
    history: bool

    @property
    def source(self) -> "AskInputs":
        """What the encoder needs."""
        return self

    def encode(self, text: str, longest: int) -> Ids:
        """The first tokens of a question, at most `longest` with the marks; unknown words are left out."""
        return framed(self.text.encode_known(text)[0], self.text, longest)

    def encode_history(self, text: str, longest: int) -> Ids:
        """The last tokens, likewise: questions go on from what was said last."""
        tokens = self.text.encode_known(text)[0]
        kept = longest - len(framed(tokens[:0], self.text))
        return framed(tokens[max(0, len(tokens) - kept) :], self.text, longest)

    def told(self, columns: Mapping[str, Tensor]) -> str:
        """Nothing belongs to an image alone."""
        return ""

    def files(self) -> dict[str, bytes]:
        text = {f"text/{FILE}": self.text.to_json().encode(), HISTORY: json.dumps(self.history).encode()}
        return seen_files(self) | text


def open_asked(folder: Path) -> Seen:
    """What `AskInputs.files` gave, below `folder`."""
    with reading(folder / HISTORY):
        history = bool(json.loads((folder / HISTORY).read_bytes()))
    return *open_seen(folder), load_tokenizer(folder / "text"), history


@dataclass(frozen=True)
class Choices:
    """Every choice of all rows once: the texts and their tokens."""

    texts: list[str]
    tokens: Ragged


@dataclass(frozen=True)
class AskExamples(Examples):
    """Columns `image`, a number into `pictures`, each of which is there once; `question`; `history`, if it is
    read; `choices`, numbers into `known`, if rows bring their own; and what is right, if it is known."""

    pictures: Pictures
    known: Choices | None = None

    def choice(self, row: int, number: int) -> str:
        """Of those that a row brings."""
        assert self.known is not None
        return self.known.texts[self.columns["choices"][row][number]]


class AskForm(ABC):
    """A `Form` of questions about images. All rows of an image are of one part: their `source` is the sha256
    of its pixels."""

    asked: ClassVar[tuple[str, ...]] = ("question",)
    """The columns of a question that waits for an answer."""

    def read(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        for row in read_asked(data, (*self.asked, "answer"), config, aside):
            yield Row(row.place, {"source": row.fields["content"], **row.fields})

    def read_questions(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        for row in read_asked(data, self.asked, config, aside):
            yield Row(row.place, {"source": _told(row), **row.fields})

    def encode_questions(
        self, rows: list[Row], inputs: AskInputs, config: DataConfig, aside: list[Aside]
    ) -> tuple[list[Row], AskExamples]:
        return rows, self._examples(rows, inputs, config)

    def _examples(self, rows: list[Row], inputs: AskInputs, config: DataConfig) -> AskExamples:
        numbers: dict[str, int] = {}
        columns: dict[str, Column] = {
            "image": np.array(
                [numbers.setdefault(row.fields["content"], len(numbers)) for row in rows], np.int64
            ),
            "question": Ragged.from_rows(
                inputs.encode(row.fields["question"], config.longest) for row in rows
            ),
        }
        if inputs.history:
            columns["history"] = Ragged.from_rows(
                inputs.encode_history(_history(row), config.longest) for row in rows
            )
        known = None
        if "choices" in self.asked:
            known, columns["choices"] = _choices(rows, inputs, config)
        pictures = {row.fields["content"]: row.fields["picture"] for row in rows}
        return AskExamples(columns, Pictures.of((pictures[content] for content in numbers), inputs), known)

    def encode(
        self, rows: list[Row], inputs: Any, config: DataConfig, aside: list[Aside]
    ) -> Part[AskExamples]:
        kept, right = keep(rows, lambda row: self.right(row, inputs, config), aside)
        examples = self._examples(kept, inputs, config)
        columns = {**examples.columns, **self.columns(right)}
        names = ("content", "history", "question", "choices", "answer")
        sha256 = hashed([row.fields.get(name) for name in names] for row in kept)
        questions, answers = ([row.fields[name] for row in kept] for name in ("question", "answer"))
        told, sizes = [_told(row) for row in kept], {"images": len(examples.pictures)}
        examples = AskExamples(columns, examples.pictures, examples.known)
        return Part(told, answers, examples, in_words(questions), sizes, sha256)

    @abstractmethod
    def right(self, row: Row, inputs: Any, config: DataConfig) -> Any | str:
        """The answer in numbers; or why the row can't be used."""

    @abstractmethod
    def columns(self, right: list[Any]) -> dict[str, Column]:
        """The answers of all rows."""

    @abstractmethod
    def make_inputs(self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> Any: ...

    @abstractmethod
    def open_inputs(self, folder: Path) -> Any: ...


def seen_of(rows: list[Row], config: DataConfig, taken: Taken) -> Seen:
    """What a model is to see, from the rows to train on but for what is taken."""
    size, source = config.image.size, taken.source
    if isinstance(source, AskInputs):
        return source.statistics, size, source.text, source.history
    if source is not None and not isinstance(source, Statistics):
        raise UserError(
            "--from: its encoder reads no images; take a run of images, or of questions about them"
        )
    texts = (text for row in rows for text in _texts(row))
    tokenizer = make_tokenizer(config.tokenizer, config.vocabulary, texts)
    return source or statistics_of(rows), size, tokenizer, "history" in rows[0].fields


def _texts(row: Row) -> Iterable[str]:
    return [row.fields["question"], row.fields.get("history", ""), *row.fields.get("choices", ())]


def _told(row: Row) -> str:
    return f"{row.fields['name']}: {row.fields['question']}"


def _history(row: Row) -> str:
    if "history" not in row.fields:
        raise UserError(
            f"{row.place}: no column of what was said before, which the model reads (data.history=NAME)"
        )
    return str(row.fields["history"])


def _choices(rows: list[Row], inputs: AskInputs, config: DataConfig) -> tuple[Choices, Ragged]:
    """All choices, and the numbers of each row's."""
    numbers: dict[str, int] = {}
    each = (
        np.array([numbers.setdefault(text, len(numbers)) for text in row.fields["choices"]], np.int64)
        for row in rows
    )
    columns = Ragged.from_rows(each)
    tokens = Ragged.from_rows(inputs.encode(text, config.longest) for text in numbers)
    return Choices([*numbers], tokens), columns
