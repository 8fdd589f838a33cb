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
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash, word_counts
from foveal.data.core.standardize import Statistics, explain_read_errors
from foveal.data.files.data_part import DataPart
from foveal.data.images.image_examples import (
    ImageExamples,
    image_processor_files,
    image_statistics,
    load_statistics_and_size,
)
from foveal.data.text.special_tokens import add_special_tokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer
from foveal.tasks.vqa.question_files import read_question_rows

HISTORY_FILE = "history.json"
VQAProcessorFields = tuple[Statistics, int, Tokenizer, bool]


@dataclass(frozen=True)
class VQAProcessor:
    """What a model sees of images, the statistics of their channels and the `size` of the square in pixels;
    the tokenizer of the texts it reads; and whether it reads a `history` of what was said before."""

    statistics: Statistics
    size: int
    text: Tokenizer
    history: bool

    @property
    def source(self) -> "VQAProcessor":
        """What the encoder needs."""
        return self

    def encode(self, text: str, max_length: int) -> TokenIds:
        """The first tokens of a question, at most `max_length` with the marks; unknown words are left out."""
        return add_special_tokens(self.text.encode_known(text)[0], self.text, max_length)

    def encode_history(self, text: str, max_length: int) -> TokenIds:
        """The last tokens, likewise: questions go on from what was said last."""
        tokens = self.text.encode_known(text)[0]
        kept = max_length - len(add_special_tokens(tokens[:0], self.text))
        return add_special_tokens(tokens[max(0, len(tokens) - kept) :], self.text, max_length)

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """Nothing belongs to an image alone."""
        return ""

    def files(self) -> dict[str, bytes]:
        text = {
            f"text/{TOKENIZER_FILE}": self.text.to_json().encode(),
            HISTORY_FILE: json.dumps(self.history).encode(),
        }
        return image_processor_files(self) | text


def load_vqa_fields(folder: Path) -> VQAProcessorFields:
    """What `VQAProcessor.files` gave, below `folder`."""
    with explain_read_errors(folder / HISTORY_FILE):
        history = bool(json.loads((folder / HISTORY_FILE).read_bytes()))
    return *load_statistics_and_size(folder), load_tokenizer(folder / "text"), history


@dataclass(frozen=True)
class ChoiceTable:
    """Every choice of all rows once: the texts and their tokens."""

    texts: list[str]
    tokens: RaggedArray


@dataclass(frozen=True)
class VQAExamples(Examples):
    """Columns `image`, a number into `images`, each of which is there once; `question`; `history`, if it is
    read; `choices`, numbers into `choice_table`, if rows bring their own; and what is right, if it is
    known."""

    images: ImageExamples
    choice_table: ChoiceTable | None = None

    def choice(self, row: int, number: int) -> str:
        """Of those that a row brings."""
        assert self.choice_table is not None
        return self.choice_table.texts[self.columns["choices"][row][number]]


class VQAFormat(ABC):
    """A `DataFormat` of questions about images. All rows of an image are of one part: their `source` is the
    sha256 of its pixels."""

    question_columns: ClassVar[tuple[str, ...]] = ("question",)
    """The columns of a question that waits for an answer."""

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        for row in read_question_rows(part, (*self.question_columns, "answer"), config, skipped):
            yield Row(row.location, {"source": row.fields["content"], **row.fields})

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        for row in read_question_rows(part, self.question_columns, config, skipped):
            yield Row(row.location, {"source": _row_title(row), **row.fields})

    def encode_unlabeled(
        self, rows: list[Row], processor: VQAProcessor, config: DataConfig, skipped: list[SkippedRow]
    ) -> tuple[list[Row], VQAExamples]:
        return rows, self._examples(rows, processor, config)

    def _examples(self, rows: list[Row], processor: VQAProcessor, config: DataConfig) -> VQAExamples:
        numbers: dict[str, int] = {}
        columns: dict[str, Column] = {
            "image": np.array(
                [numbers.setdefault(row.fields["content"], len(numbers)) for row in rows], np.int64
            ),
            "question": RaggedArray.from_rows(
                processor.encode(row.fields["question"], config.max_length) for row in rows
            ),
        }
        if processor.history:
            columns["history"] = RaggedArray.from_rows(
                processor.encode_history(_history(row), config.max_length) for row in rows
            )
        known = None
        if "choices" in self.question_columns:
            known, columns["choices"] = _choices(rows, processor, config)
        pictures = {row.fields["content"]: row.fields["picture"] for row in rows}
        return VQAExamples(
            columns, ImageExamples.from_data((pictures[content] for content in numbers), processor), known
        )

    def encode(
        self, rows: list[Row], processor: Any, config: DataConfig, skipped: list[SkippedRow]
    ) -> SplitData[VQAExamples]:
        kept, right = encode_or_skip(rows, lambda row: self.reference(row, processor, config), skipped)
        examples = self._examples(kept, processor, config)
        columns = {**examples.columns, **self.columns(right)}
        names = ("content", "history", "question", "choices", "answer")
        sha256 = content_hash([row.fields.get(name) for name in names] for row in kept)
        questions, answers = ([row.fields[name] for row in kept] for name in ("question", "answer"))
        told, sizes = [_row_title(row) for row in kept], {"images": len(examples.images)}
        examples = VQAExamples(columns, examples.images, examples.choice_table)
        return SplitData(told, answers, examples, word_counts(questions), sizes, sha256)

    @abstractmethod
    def reference(self, row: Row, processor: Any, config: DataConfig) -> Any | str:
        """The answer in numbers; or why the row can't be used."""

    @abstractmethod
    def columns(self, reference: list[Any]) -> dict[str, Column]:
        """The answers of all rows."""

    @abstractmethod
    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> Any: ...

    @abstractmethod
    def load_processor(self, folder: Path) -> Any: ...


def make_vqa_fields(rows: list[Row], config: DataConfig, reused: ReusedProcessors) -> VQAProcessorFields:
    """What a model is to see, from the rows to train on but for what is taken."""
    size, source = config.image.size, reused.source
    if isinstance(source, VQAProcessor):
        return source.statistics, size, source.text, source.history
    if source is not None and not isinstance(source, Statistics):
        raise UserError(
            "--from: its encoder reads no images; take a run of images, or of questions about them"
        )
    texts = (text for row in rows for text in _texts(row))
    tokenizer = make_tokenizer(config.tokenizer, config.vocab_size, texts)
    return source or image_statistics(rows), size, tokenizer, "history" in rows[0].fields


def _texts(row: Row) -> Iterable[str]:
    return [row.fields["question"], row.fields.get("history", ""), *row.fields.get("choices", ())]


def _row_title(row: Row) -> str:
    return f"{row.fields['name']}: {row.fields['question']}"


def _history(row: Row) -> str:
    if "history" not in row.fields:
        raise UserError(
            f"{row.location}: no column of what was said before, which the model reads (data.history=NAME)"
        )
    return str(row.fields["history"])


def _choices(rows: list[Row], processor: VQAProcessor, config: DataConfig) -> tuple[ChoiceTable, RaggedArray]:
    """All choices, and the numbers of each row's."""
    numbers: dict[str, int] = {}
    each = (
        np.array([numbers.setdefault(text, len(numbers)) for text in row.fields["choices"]], np.int64)
        for row in rows
    )
    columns = RaggedArray.from_rows(each)
    tokens = RaggedArray.from_rows(processor.encode(text, config.max_length) for text in numbers)
    return ChoiceTable([*numbers], tokens), columns
