"""Texts with a label each: two columns of a table, to tokens and class numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.classes import (
    LABELS_FILE,
    class_names,
    class_names_to_json,
    load_class_names,
    make_label_encoder,
)
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash, word_counts
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import read_rows
from foveal.data.text import unlabeled_texts
from foveal.data.text.special_tokens import add_special_tokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer


@dataclass(frozen=True)
class TextClassificationProcessor:
    """The tokenizer of the texts, and the classes in the order of their numbers."""

    source: Tokenizer
    labels: tuple[str, ...]

    def encode(self, text: str, max_length: int) -> TokenIds:
        """The first tokens, at most `max_length` with the marks around them; unknown characters are left
        out."""
        return add_special_tokens(self.source.encode_known(text)[0], self.source, max_length)

    def files(self) -> dict[str, bytes]:
        return {
            f"text/{TOKENIZER_FILE}": self.source.to_json().encode(),
            LABELS_FILE: class_names_to_json(self.labels),
        }


def load_processor(folder: Path) -> TextClassificationProcessor:
    """What `TextClassificationProcessor.files` gave, below `folder`."""
    return TextClassificationProcessor(
        load_tokenizer(folder / "text"), load_class_names(folder / LABELS_FILE)
    )


def read(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The rows of a table as fields `source` and `label`."""
    for row in read_rows(part.path, (config.text, config.label)):
        if isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            text, label = (row.fields[name].strip() for name in (config.text, config.label))
            yield Row(row.location, {"source": text, "label": label})


def read_unlabeled(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Texts without labels."""
    return unlabeled_texts.read_unlabeled(part, config.text, skipped)


def encode_unlabeled(
    rows: list[Row], processor: TextClassificationProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> tuple[list[Row], Examples]:
    """Of a longer text than the model reads, its beginning."""
    sources = (processor.encode(row.fields["source"], config.max_length) for row in rows)
    return rows, Examples({"source": RaggedArray.from_rows(sources)})


def make_processor(
    data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
) -> TextClassificationProcessor:
    labels = class_names(
        data,
        (row.fields["label"] for row in rows),
        f"all {len(rows):,} rows to train on have the label",
        " (data.label=NAME is the column)",
        reused.labels,
    )
    if len(labels) > len(rows) // 2 and len(rows) > 4:
        raise UserError(
            f"{data}: {len(labels):,} labels in {len(rows):,} rows: is '{config.label}' the column of the "
            "classes? (data.label=NAME)"
        )
    texts = (row.fields["source"] for row in rows)
    source = reused.source or make_tokenizer(config.tokenizer, config.vocab_size, texts)
    return TextClassificationProcessor(source, labels)


def encode(
    rows: list[Row], processor: TextClassificationProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> SplitData[Examples]:
    """Columns `source` (tokens with a stop) and `label`."""
    number = make_label_encoder(processor.labels)
    kept, numbers = encode_or_skip(rows, lambda row: number([row.fields["label"]]), skipped)
    sources, labels = ([row.fields[name] for row in kept] for name in ("source", "label"))
    columns: dict[str, Column] = {
        "source": RaggedArray.from_rows(processor.encode(source, config.max_length) for source in sources),
        "label": np.array(numbers, np.int64).reshape(-1),
    }
    examples = Examples(columns)
    sizes = {"tokens": sum(examples.lengths("source")), "characters": sum(map(len, sources))}
    sha256 = content_hash(zip(sources, labels, strict=True))
    return SplitData(sources, labels, examples, word_counts(sources), sizes, sha256)
