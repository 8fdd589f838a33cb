"""Sources that are texts: a column of a table with labels, or the first text of each pair."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.fields import Fields
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, text_key, usable_rows
from foveal.data.core.simple_features import MAX_NGRAMS, SimpleFeatures, bags_of_tokens
from foveal.data.core.split_data import word_counts
from foveal.data.files.aligned import read_aligned
from foveal.data.files.data_part import DataPart
from foveal.data.files.part_rows import read_part_rows
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import Target
from foveal.data.text.special_tokens import add_special_tokens, token_names
from foveal.data.text.text_folders import read_texts_by_class
from foveal.data.text.text_target import TextTargetProcessor
from foveal.data.text.tokenizer_base import VocabularySize
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer
from foveal.data.text.unlabeled_texts import check_length, read_unlabeled_texts

TEXT_FOLDER, SOURCE_FOLDER = "text", "source"
RATIO_SAMPLE = 1000
"""Number of pairs, evenly spread over all, on which the ratio of lengths is measured."""


def encode_text(text: str, tokenizer: Tokenizer, max_length: int | None = None) -> TokenIds:
    """Return the tokens of a source, at most `max_length` with special tokens.

    Unknown characters are dropped.
    """
    return add_special_tokens(tokenizer.encode_known(text)[0], tokenizer, max_length)


def check_trained_length(tokens: TokenIds, config: DataConfig) -> TokenIds | str:
    """Return the tokens of a training row, or the reason why they can't be used: there are too many."""
    if len(tokens) > config.max_length:
        return f"{len(tokens)} tokens, and data.max_length={config.max_length}: train with more"
    return tokens


class TextSource(Source[Tokenizer]):
    """A text in a column of a table. Texts that are too long for the model are truncated."""

    settings: tuple[str, ...] = (
        "data.text",
        "data.encoding",
        "data.tokenizer",
        "data.vocab_size",
        "data.max_length",
        "data.batch_tokens",
    )
    fixed_settings = ("data.tokenizer", "data.vocab_size")
    simple_features_in_words = "tokens and pairs of tokens"
    max_simple_features = MAX_NGRAMS
    same_label = "all {count:,} rows to train on have the label"
    label_hint = " (data.label=NAME is the column)"
    input_field = "source"
    length_unit = "characters"
    has_tokenizer = True
    is_stored = True
    reads_lines = True
    model_sizes = ("vocabulary",)

    def column(self, config: DataConfig) -> str:
        """Return the name of the source's column in a table."""
        return config.text

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        column, target_column = self.column(config), target.column(config)
        if part.is_folder and target.is_class:
            yield from read_texts_by_class(part, skipped)
            return
        for row in usable_rows(read_part_rows(part, (column, target_column)), skipped):
            text, fields = row.fields[column].strip(), target.parse(target_column, row.fields[target_column])
            if isinstance(fields, str):
                skipped.append(SkippedRow(row.location, fields))
            else:
                yield Row(row.location, {"source": text, **fields}, text_key(text))

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        for row in read_unlabeled_texts(part, self.column(config), skipped):
            yield self.line_row(row.location, row.fields["source"])

    def own_columns(self, row: Row | SkippedRow, config: DataConfig) -> Fields:
        return {self.column(config): row.fields["source"] if isinstance(row, Row) else None}

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[Tokenizer, Sequence[Row]]:
        return reused.source or make_tokenizer(config.tokenizer, config.vocab_size, self.texts(rows)), rows

    def sized_processor(self, sizes: Mapping[str, int], config: DataConfig) -> VocabularySize:
        return VocabularySize(sizes["vocabulary"])

    def texts(self, rows: Sequence[Row]) -> Iterable[str]:
        """Return the texts that a tokenizer is fitted to."""
        return (row.fields["source"] for row in rows)

    def files(self, processor: Tokenizer, target_processor: Any) -> dict[str, bytes]:
        return {f"{TEXT_FOLDER}/{TOKENIZER_FILE}": processor.to_json().encode()}

    def load(self, folder: Path) -> Tokenizer:
        return load_tokenizer(folder / TEXT_FOLDER)

    def encode(self, row: Row, processor: Tokenizer, config: DataConfig) -> Any | str:
        return self.encode_all([row], processor, config)[0]

    def encode_all(self, rows: Sequence[Row], processor: Tokenizer, config: DataConfig) -> list[Any | str]:
        tokens = processor.encode_all_known([row.fields["source"] for row in rows])
        return [add_special_tokens(each, processor, config.max_length) for each in tokens]

    def check_labels(self, data: str, labels: Sequence[str], rows: Sequence[Row], config: DataConfig) -> None:
        if len(labels) > len(rows) // 2 and len(rows) > 4:
            raise UserError(
                f"{data}: {len(labels):,} labels in {len(rows):,} rows: is '{config.label}' the column of "
                "the classes? (data.label=NAME)"
            )

    def simple_features(self, train: Examples, held_out: Examples) -> SimpleFeatures:
        return bags_of_tokens(train, held_out)

    def position_names(self, batch: ExampleBatch, name: str, processor: Tokenizer) -> tuple[str, ...]:
        return token_names(batch.columns["source"][0].tolist(), processor)

    def names(self, rows: Sequence[Row]) -> list[str]:
        return [row.fields["source"] for row in rows]

    def content_hashes(self, rows: Sequence[Row]) -> list[str]:
        return []

    def lengths(self, rows: Sequence[Row], examples: Any) -> list[int]:
        return word_counts(self.names(rows))

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"tokens": sum(examples.lengths("source")), "characters": sum(map(len, self.names(rows)))}


class PairedTextSource(TextSource):
    """The first text of each pair, from two columns of a table or two aligned files."""

    is_stored = True
    settings = (
        "data.source",
        "data.encoding",
        "data.tokenizer",
        "data.vocab_size",
        "data.target_tokenizer",
        "data.shared_vocabulary",
        "data.max_length",
        "data.batch_tokens",
    )

    def column(self, config: DataConfig) -> str:
        return config.source

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        if part.aligned is None:
            yield from super().read(part, target, config, skipped)
            return
        columns = self.column(config), target.column(config)
        for row in usable_rows(read_aligned(*part.aligned, columns, part.encoding), skipped):
            source, text = (row.fields[column].strip() for column in columns)
            yield Row(row.location, {"source": source, "target": text}, text_key(source))

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[Tokenizer, Sequence[Row]]:
        if reused.source is None and config.shared_vocabulary:
            texts = chain(self.texts(rows), (row.fields["target"] for row in rows))
            return make_tokenizer(config.tokenizer, config.vocab_size, texts), rows
        return super().fit(data, rows, config, reused)

    def shared_tokenizer(self, processor: Tokenizer, config: DataConfig) -> Tokenizer | None:
        return processor if config.shared_vocabulary else None

    def length_ratio(
        self, rows: Sequence[Row], processor: Tokenizer, target_tokens: Callable[[Row], int]
    ) -> float:
        sample = rows[:: len(rows) // RATIO_SAMPLE + 1]
        source_tokens = sum(len(processor.encode_known(row.fields["source"])[0]) for row in sample)
        return (sum(map(target_tokens, sample)) or 1) / (source_tokens or 1)

    def files(self, processor: Tokenizer, target_processor: TextTargetProcessor) -> dict[str, bytes]:
        folder = TEXT_FOLDER if target_processor.tokenizer is processor else SOURCE_FOLDER
        return {f"{folder}/{TOKENIZER_FILE}": processor.to_json().encode()}

    def load(self, folder: Path) -> Tokenizer:
        shared = (folder / TEXT_FOLDER).is_dir()
        return load_tokenizer(folder / (TEXT_FOLDER if shared else SOURCE_FOLDER))

    def encode_all(self, rows: Sequence[Row], processor: Tokenizer, config: DataConfig) -> list[Any | str]:
        tokens = processor.encode_all_known([row.fields["source"] for row in rows])
        return [check_trained_length(add_special_tokens(each, processor), config) for each in tokens]

    def encode_unlabeled(self, row: Row, processor: Tokenizer, config: DataConfig) -> Any | str:
        return check_length(encode_text(row.fields["source"], processor), config.max_length)

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"source_tokens": sum(examples.lengths("source"))}
