"""Sources that are sentences of words, each of which is a place; and their tags."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.classes import class_names_to_json, load_class_names
from foveal.data.core.examples import Column
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.labels import ClassLabels, LabelEachTarget
from foveal.data.pairs.target import Target
from foveal.data.text.conll import CONLL_SUFFIXES, read_tagged
from foveal.data.text.special_tokens import add_special_tokens
from foveal.data.text.text_source import TextSource
from foveal.data.text.tokenizers import TokenIds, Tokenizer
from foveal.data.text.unlabeled_texts import check_length, read_unlabeled

TAGS_FILE = "tags.json"


class EncodedWords(NamedTuple):
    """The tokens of a sentence with the marks, and where each word's own first token is."""

    tokens: TokenIds
    places: TokenIds


class WordsSource(TextSource):
    """A sentence, of CoNLL or a table: each word stands behind a space."""

    same_label = "all words have the tag"
    label_hint = " (data.tags=NAME)"
    place = "word"

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        for row in read_tagged(part.path, target.column(config)):
            if isinstance(row, SkippedRow):
                skipped.append(row)
            else:
                words = row.fields["tokens"]
                yield Row(row.location, {"source": words, target.field: row.fields["tags"]}, " ".join(words))

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read sentences, words with white space between: a line each, or a column of a table; or those of a
        file as for training, with tags or without."""
        if part.suffix in CONLL_SUFFIXES or (part.is_table and "tokens" in part.known_columns()):
            for row in read_tagged(part.path, None):
                if isinstance(row, SkippedRow):
                    skipped.append(row)
                else:
                    yield Row(row.location, {"source": row.fields["tokens"]})
            return
        for row in read_unlabeled(part, config.text, skipped):
            yield Row(row.location, {"source": row.fields["source"].split()})

    def texts(self, rows: list[Row]) -> Iterable[str]:
        return (" " + " ".join(row.fields["source"]) for row in rows)

    def encode(self, row: Row, processor: Tokenizer, config: DataConfig) -> Any | str:
        found = encode_words(row.fields["source"], processor)
        if len(found.tokens) > config.max_length:
            length = len(found.tokens)
            return f"{length} tokens, and data.max_length={config.max_length}: raise it to use the row"
        return found

    def encode_unlabeled(self, row: Row, processor: Tokenizer, config: DataConfig) -> Any | str:
        found = encode_words(row.fields["source"], processor)
        tokens = check_length(found.tokens, config.max_length)
        return tokens if isinstance(tokens, str) else found

    def check_labels(self, data: str, labels: Sequence[str], rows: list[Row], config: DataConfig) -> None:
        """Sentences may have many tags."""

    def examples(
        self, rows: list[Row], values: list[EncodedWords], processor: Tokenizer, columns: Mapping[str, Column]
    ) -> Any:
        return super().examples(rows, [value.tokens for value in values], processor, columns)

    def places(self, value: EncodedWords) -> TokenIds:
        return value.places

    def names(self, rows: list[Row]) -> list[str]:
        return [" ".join(row.fields["source"]) for row in rows]

    def lengths(self, rows: list[Row], examples: Any) -> list[int]:
        return [len(row.fields["source"]) for row in rows]

    def sizes(self, rows: list[Row], examples: Any) -> dict[str, int]:
        return {"words": sum(self.lengths(rows, examples)), "tokens": sum(examples.lengths("source"))}


def encode_words(words: Sequence[str], tokenizer: Tokenizer) -> EncodedWords:
    """Return the tokens of all words, each behind a space, with the marks; and each word's place.

    A word without a known character stands at the token behind it.
    """
    space = tokenizer.encode_known(" ")[0]
    tokens, places = [], []
    at = 0
    for word in words:
        found = tokenizer.encode_known(f" {word}")[0]
        # Characters spell the space by itself; byte-pairs make it part of the word.
        alone = len(found) > len(space) and np.array_equal(found[: len(space)], space)
        places.append(at + (len(space) if alone else 0))
        tokens.append(found)
        at += len(found)
    first = np.minimum(np.array(places, np.int64), at) + int(tokenizer.add_bos)
    return EncodedWords(add_special_tokens(np.concatenate(tokens), tokenizer), first)


class TagTarget(LabelEachTarget):
    """A tag for each word."""

    settings = ("data.tags",)

    def column(self, config: DataConfig) -> str:
        return config.tags

    def files(self, processor: ClassLabels, source_processor: Any) -> dict[str, bytes]:
        return {TAGS_FILE: class_names_to_json(processor.labels)}

    def load(self, folder: Path, source_processor: Any) -> ClassLabels:
        return ClassLabels(load_class_names(folder / TAGS_FILE))
