"""The source of questions about images: an image, a question, and optionally a history and choices."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, RaggedArray, RowIndices
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.split_data import word_counts
from foveal.data.core.standardize import explain_read_errors
from foveal.data.files.data_part import DataPart
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_batches import ImageEvalBatches, ImageTrainBatches
from foveal.data.images.image_examples import ImageExamples, ImageProcessor, image_statistics
from foveal.data.images.image_source import ImageSource, PixelSource, keyed_by_content
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import Target
from foveal.data.text.special_tokens import add_special_tokens, token_names
from foveal.data.text.text_source import TEXT_FOLDER, encode_text
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer
from foveal.tasks.vqa.data_settings import vqa_data
from foveal.tasks.vqa.question_batches import VQABatches, collate_center_crops
from foveal.tasks.vqa.question_files import read_question_rows
from foveal.tasks.vqa.vqa_examples import ChoiceTable, VQAExamples

HISTORY_FILE = "history.json"


@dataclass(frozen=True)
class ImageAndTextProcessor(ImageProcessor):
    """The processor of an image and its texts: `text` is the tokenizer, `history` whether a history is
    read."""

    text: Tokenizer
    history: bool

    def encode(self, text: str, max_length: int) -> TokenIds:
        """Return the first tokens of a question, at most `max_length` with special tokens."""
        return encode_text(text, self.text, max_length)

    def encode_history(self, text: str, max_length: int) -> TokenIds:
        """Return the last tokens of a history, since questions refer to the most recent rounds."""
        tokens = self.text.encode_known(text)[0]
        count = max_length - len(add_special_tokens(tokens[:0], self.text))
        return add_special_tokens(tokens[max(0, len(tokens) - count) :], self.text, max_length)


class EncodedQuestion(NamedTuple):
    """The tokens of a question, of its history, and of each of the row's choices."""

    question: TokenIds
    history: TokenIds
    choices: list[TokenIds]


class ImageAndTextSource(Source[ImageAndTextProcessor]):
    """A question about an image. All rows of an image are in one split, since their key is its sha256."""

    fixed_settings = (
        *PixelSource.fixed_settings,
        "data.tokenizer",
        "data.vocab_size",
        "data.history",
    )
    same_label = "all questions to train on have the answer"
    label_hint = " (data.answer=NAME is the column)"
    has_tokenizer = True

    def __init__(self, choices: bool = False):
        self.question_columns = ("question", "choices") if choices else ("question",)
        """The columns of a question without an answer."""
        self.settings = (
            "data.encoding",
            "data.image",
            "data.augment",
            *(f"data.{name}" for name in self.question_columns),
            "data.history",
            "data.tokenizer",
            "data.vocab_size",
            "data.max_length",
        )

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        requested = *self.question_columns, target.field
        for row in read_question_rows(part, requested, vqa_data(config), skipped):
            yield keyed_by_content(row, {})

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        for row in read_question_rows(part, self.question_columns, vqa_data(config), skipped):
            yield Row(row.location, {"source": _row_title(row), **row.fields})

    def table(self, part: DataPart) -> AnyPath | None:
        return part.table

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[ImageAndTextProcessor, Sequence[Row]]:
        size, known = config.image.size, reused.source
        if isinstance(known, ImageAndTextProcessor):
            return ImageAndTextProcessor(known.statistics, size, known.text, known.history), rows
        if known is not None and not isinstance(known, ImageProcessor):
            raise UserError(
                "--from: its encoder reads no images; take a run of images, or of questions about them"
            )
        texts = (text for row in rows for text in _texts(row))
        tokenizer = make_tokenizer(config.tokenizer, config.vocab_size, texts)
        statistics = image_statistics(rows) if known is None else known.statistics
        return ImageAndTextProcessor(statistics, size, tokenizer, "history" in rows[0].fields), rows

    def for_config(self, processor: ImageAndTextProcessor, config: DataConfig) -> ImageAndTextProcessor:
        return replace(processor, size=config.image.size)

    def files(self, processor: ImageAndTextProcessor, target_processor: Any) -> dict[str, bytes]:
        return ImageSource().files(processor, target_processor) | {
            f"{TEXT_FOLDER}/{TOKENIZER_FILE}": processor.text.to_json().encode(),
            HISTORY_FILE: json.dumps(processor.history).encode(),
        }

    def load(self, folder: Path) -> ImageAndTextProcessor:
        with explain_read_errors(folder / HISTORY_FILE):
            history = bool(parse_json((folder / HISTORY_FILE).read_bytes()))
        image = ImageSource().load(folder)
        return ImageAndTextProcessor(
            image.statistics, image.size, load_tokenizer(folder / TEXT_FOLDER), history
        )

    def encode(self, row: Row, processor: ImageAndTextProcessor, config: DataConfig) -> EncodedQuestion | str:
        longest = config.max_length
        history = processor.encode_history(_history(row), longest) if processor.history else np.zeros(0, int)
        choices = [processor.encode(text, longest) for text in row.fields.get("choices", ())]
        return EncodedQuestion(processor.encode(row.fields["question"], longest), history, choices)

    def examples(
        self,
        rows: Sequence[Row],
        values: list[EncodedQuestion],
        processor: ImageAndTextProcessor,
        columns: Mapping[str, Column],
    ) -> VQAExamples:
        index_of: dict[str, int] = {}
        image = [index_of.setdefault(row.fields["content"], len(index_of)) for row in rows]
        source_columns: dict[str, Column] = {
            "image": np.array(image, np.int64),
            "question": RaggedArray.from_rows(value.question for value in values),
        }
        if processor.history:
            source_columns["history"] = RaggedArray.from_rows(value.history for value in values)
        table = None
        if "choices" in self.question_columns:
            table, source_columns["choices"] = _choices(rows, values)
        pictures = {row.fields["content"]: row.fields["picture"] for row in rows}
        images = ImageExamples.from_data((pictures[content] for content in index_of), processor, {})
        return VQAExamples({**source_columns, **columns}, images, table)

    def check_labels(self, data: str, labels: Sequence[str], rows: Sequence[Row], config: DataConfig) -> None:
        if len(labels) > len(rows) // 2 and len(rows) > 4:
            raise UserError(
                f"{data}: {len(labels):,} answers to {len(rows):,} questions, too many to choose among: "
                "write them instead (--task vqa-generate)"
            )

    def position_names(
        self, batch: ExampleBatch, name: str, processor: ImageAndTextProcessor
    ) -> tuple[str, ...]:
        return token_names(batch.columns["question"][0].tolist(), processor.text)

    def pixels(self, examples: VQAExamples, row: int) -> NDArray[np.uint8]:
        crop = examples.images.center_crop(int(examples.columns["image"][row]))
        return np.broadcast_to(crop, (*crop.shape[:2], 3))

    def names(self, rows: Sequence[Row]) -> list[str]:
        return [_row_title(row) for row in rows]

    def input_key(self, row: Row) -> str:
        return repr(self.hashed(row, None))

    def hashed(self, row: Row, reference: Any) -> Any:
        return [*map(row.fields.get, ("content", "history", "question", "choices")), reference]

    def content_hashes(self, rows: Sequence[Row]) -> list[str]:
        return []

    def lengths(self, rows: Sequence[Row], examples: Any) -> list[int]:
        return word_counts(row.fields["question"] for row in rows)

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"images": len(examples.images)}

    def train_batches(self, examples: Any, config: DataConfig, seed: int) -> VQABatches:
        """Return batches of images, each with all its questions."""
        images = ImageTrainBatches(examples.images, config.image.batch_size, config.augment, seed)
        return VQABatches(examples, images)

    def eval_batches(self, examples: Any, config: DataConfig) -> VQABatches:
        return VQABatches(examples, ImageEvalBatches(examples.images, config.image))

    def collate(self, examples: Any, rows: RowIndices) -> ExampleBatch:
        return collate_center_crops(examples, rows)


def _texts(row: Row) -> Iterable[str]:
    return [row.fields["question"], row.fields.get("history", ""), *row.fields.get("choices", ())]


def _row_title(row: Row) -> str:
    return f"{row.fields['name']}: {row.fields['question']}"


def _history(row: Row) -> str:
    if "history" not in row.fields:
        raise UserError(
            f"{row.location}: no column with the history, which the model reads "
            "(train with data.history=NAME)"
        )
    return str(row.fields["history"])


def _choices(rows: Sequence[Row], values: list[EncodedQuestion]) -> tuple[ChoiceTable, RaggedArray]:
    """Return a table with every choice once, and the indices of each row's choices."""
    index_of: dict[str, int] = {}
    tokens: dict[str, TokenIds] = {}
    row_choices = []
    for row, value in zip(rows, values, strict=True):
        tokens |= zip(row.fields["choices"], value.choices, strict=True)
        row_choices.append([index_of.setdefault(text, len(index_of)) for text in row.fields["choices"]])
    column = RaggedArray.from_rows(np.array(choices, np.int64) for choices in row_choices)
    return ChoiceTable([*index_of], RaggedArray.from_rows(tokens[text] for text in index_of)), column
