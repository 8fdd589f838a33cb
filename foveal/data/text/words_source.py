"""Sources that are sentences, in which each word is a place."""

from abc import ABC
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column
from foveal.data.core.fields import Fields
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, usable_rows
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.source import ProcessorT, Source
from foveal.data.pairs.target import Target
from foveal.data.text.conll import CONLL_SUFFIXES, read_tagged_part
from foveal.data.text.special_tokens import add_special_tokens
from foveal.data.text.text_source import TextSource, check_trained_length
from foveal.data.text.tokenizers import TokenIds, Tokenizer
from foveal.data.text.unlabeled_texts import check_length, read_unlabeled_texts
from foveal.data.text.word_vocabulary import VOCABULARY_FILE, WordVocabulary, load_vocabulary

WORDS_FOLDER = "words"


class EncodedWords(NamedTuple):
    """The tokens of a sentence with special tokens, and the index of each word's first token."""

    tokens: TokenIds
    places: TokenIds


class SentenceSource(Source[ProcessorT], ABC):
    """A sentence of a CoNLL file or a table, in which each word is a place."""

    same_label = "all words have the tag"
    input_field = "source"
    length_unit = "words"
    label_hint = " (data.tags=NAME)"
    place = "word"

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        for row in usable_rows(read_tagged_part(part, target.column(config)), skipped):
            words = row.fields["tokens"]
            yield Row(row.location, {"source": words, target.field: row.fields["tags"]}, " ".join(words))

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read sentences: lines of words separated by white space, a column of a table, or a file in a
        training format.

        Tags are ignored, and need not exist.
        """
        if part.suffix in CONLL_SUFFIXES or (part.is_table and "tokens" in part.known_columns()):
            for row in usable_rows(read_tagged_part(part, None), skipped):
                yield Row(row.location, {"source": row.fields["tokens"]})
            return
        for row in read_unlabeled_texts(part, config.text, skipped):
            yield self.line_row(row.location, row.fields["source"])

    def line_row(self, location: str, text: str) -> Row:
        return Row(location, {"source": text.split()})

    def own_columns(self, row: Row | SkippedRow, config: DataConfig) -> Fields:
        return {"tokens": row.fields["source"] if isinstance(row, Row) else None}

    def check_labels(self, data: str, labels: Sequence[str], rows: Sequence[Row], config: DataConfig) -> None:
        """Accept any number of tags."""

    def names(self, rows: Sequence[Row]) -> list[str]:
        return [" ".join(row.fields["source"]) for row in rows]

    def lengths(self, rows: Sequence[Row], examples: Any) -> list[int]:
        return [len(row.fields["source"]) for row in rows]

    def content_hashes(self, rows: Sequence[Row]) -> list[str]:
        return []


class WordsSource(SentenceSource[Tokenizer], TextSource):
    """A sentence as tokens. Each word is encoded with a space before it, and its place is its first token."""

    is_stored = True

    def texts(self, rows: Sequence[Row]) -> Iterable[str]:
        return (" " + " ".join(row.fields["source"]) for row in rows)

    def encode(self, row: Row, processor: Tokenizer, config: DataConfig) -> Any | str:
        encoded = encode_words(row.fields["source"], processor)
        tokens = check_trained_length(encoded.tokens, config)
        return tokens if isinstance(tokens, str) else encoded

    def encode_all(self, rows: Sequence[Row], processor: Tokenizer, config: DataConfig) -> list[Any | str]:
        return [self.encode(row, processor, config) for row in rows]

    def encode_unlabeled(self, row: Row, processor: Tokenizer, config: DataConfig) -> Any | str:
        encoded = encode_words(row.fields["source"], processor)
        tokens = check_length(encoded.tokens, config.max_length)
        return tokens if isinstance(tokens, str) else encoded

    def examples(
        self,
        rows: Sequence[Row],
        values: list[EncodedWords],
        processor: Tokenizer,
        columns: Mapping[str, Column],
    ) -> Any:
        return super().examples(rows, [value.tokens for value in values], processor, columns)

    def places(self, value: EncodedWords) -> TokenIds:
        return value.places

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"words": sum(self.lengths(rows, examples)), "tokens": sum(examples.lengths("source"))}


class WordFormsSource(SentenceSource[WordVocabulary]):
    """A sentence as words, each of which is encoded as the ids of its forms and characters."""

    is_stored = True
    settings = ("data.text", "data.encoding", "data.max_length", "data.batch_tokens")

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[WordVocabulary, Sequence[Row]]:
        words = (word for row in rows for word in row.fields["source"])
        return reused.source or WordVocabulary.fit(words), rows

    def files(self, processor: WordVocabulary, target_processor: Any) -> dict[str, bytes]:
        return {f"{WORDS_FOLDER}/{VOCABULARY_FILE}": processor.to_json()}

    def load(self, folder: Path) -> WordVocabulary:
        return load_vocabulary(folder / WORDS_FOLDER / VOCABULARY_FILE)

    def position_names(self, batch: ExampleBatch, name: str, processor: WordVocabulary) -> tuple[str, ...]:
        return tuple(name.split())

    def encode(self, row: Row, processor: WordVocabulary, config: DataConfig) -> Any | str:
        words = row.fields["source"]
        if len(words) > config.max_length:
            return f"{len(words)} words, and data.max_length={config.max_length}: train with more"
        return processor.encode(words)

    def encode_unlabeled(self, row: Row, processor: WordVocabulary, config: DataConfig) -> Any | str:
        words = row.fields["source"]
        if len(words) > config.max_length:
            return f"{len(words)} words, and the model reads at most {config.max_length}: cut it"
        return processor.encode(words)

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"words": sum(self.lengths(rows, examples))}


def encode_words(words: Sequence[str], tokenizer: Tokenizer) -> EncodedWords:
    """Return the tokens of all words, including special tokens, and the place of each word.

    Each word is encoded with a space before it. The place of a word without known characters is the next
    token.
    """
    space = tokenizer.encode_known(" ")[0]
    tokens, places = [], []
    count = 0
    for word in words:
        word_tokens = tokenizer.encode_known(f" {word}")[0]
        # Character tokenizers encode the space as a token of its own; byte pairs make it part of the word.
        has_space = len(word_tokens) > len(space) and np.array_equal(word_tokens[: len(space)], space)
        places.append(count + (len(space) if has_space else 0))
        tokens.append(word_tokens)
        count += len(word_tokens)
    first_tokens = np.minimum(np.array(places, np.int64), count) + int(tokenizer.add_bos)
    return EncodedWords(add_special_tokens(np.concatenate(tokens), tokenizer), first_tokens)
