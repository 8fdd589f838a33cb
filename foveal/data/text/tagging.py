"""Sentences with a tag a word: CoNLL or JSON lines, to tokens, each word's place in them, and tag numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.classes import (
    ClassIds,
    class_names,
    class_names_to_json,
    load_class_names,
    make_label_encoder,
)
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.files.data_part import DataPart
from foveal.data.text import unlabeled_texts
from foveal.data.text.conll import CONLL_SUFFIXES, read_tagged
from foveal.data.text.special_tokens import add_special_tokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer

TAGS_FILE = "tags.json"


@dataclass(frozen=True)
class TaggingProcessor:
    """The tokenizer of the words, and the tags in the order of their numbers."""

    source: Tokenizer
    labels: tuple[str, ...]

    def encode(self, words: Sequence[str]) -> tuple[TokenIds, TokenIds]:
        """The tokens of all words, each behind a space, and the marks; where each word's own first token is.

        A word of which no character is known stands at the token behind it.
        """
        space = self.source.encode_known(" ")[0]
        tokens, places = [], []
        at = 0
        for word in words:
            found = self.source.encode_known(f" {word}")[0]
            # Characters spell the space by itself; byte-pairs make it part of the word.
            alone = len(found) > len(space) and np.array_equal(found[: len(space)], space)
            places.append(at + (len(space) if alone else 0))
            tokens.append(found)
            at += len(found)
        found = np.minimum(np.array(places, np.int64), at)
        return add_special_tokens(np.concatenate(tokens), self.source), found + int(self.source.add_bos)

    def files(self) -> dict[str, bytes]:
        return {
            f"text/{TOKENIZER_FILE}": self.source.to_json().encode(),
            TAGS_FILE: class_names_to_json(self.labels),
        }


def load_processor(folder: Path) -> TaggingProcessor:
    """What `TaggingProcessor.files` gave, below `folder`."""
    return TaggingProcessor(load_tokenizer(folder / "text"), load_class_names(folder / TAGS_FILE))


def read(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The sentences of a file as fields `source` (words) and `target` (tags)."""
    for row in read_tagged(part.path, config.tags):
        if isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            yield Row(row.location, {"source": row.fields["tokens"], "target": row.fields["tags"]})


def read_unlabeled(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Sentences, words with white space between: a line each, or a column of a table; or those of a file as
    for training, with tags or without."""
    if part.suffix in CONLL_SUFFIXES or (part.is_table and "tokens" in part.known_columns()):
        for found in read_tagged(part.path, None):
            if isinstance(found, SkippedRow):
                skipped.append(found)
            else:
                yield Row(found.location, {"source": found.fields["tokens"]})
        return
    for row in unlabeled_texts.read_unlabeled(part, config.text, skipped):
        yield Row(row.location, {"source": row.fields["source"].split()})


def encode_unlabeled(
    rows: list[Row], processor: TaggingProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> tuple[list[Row], Examples]:
    def encoded(row: Row) -> tuple[TokenIds, TokenIds] | str:
        source, places = processor.encode(row.fields["source"])
        found = unlabeled_texts.check_length(source, config.max_length)
        return found if isinstance(found, str) else (found, places)

    kept, found = encode_or_skip(rows, encoded, skipped)
    return kept, Examples(_columns(found))


def make_processor(
    data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
) -> TaggingProcessor:
    found = (tag for row in rows for tag in row.fields["target"])
    tags = class_names(data, found, "all words have the tag", " (data.tags=NAME)", reused.labels)
    texts = (" " + " ".join(row.fields["source"]) for row in rows)
    source = reused.source or make_tokenizer(config.tokenizer, config.vocab_size, texts)
    return TaggingProcessor(source, tags)


def encode(
    rows: list[Row], processor: TaggingProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> SplitData[Examples]:
    """Columns `source`, `places` and `target` (tag numbers)."""
    number, longest = make_label_encoder(processor.labels), config.max_length

    def encoded(row: Row) -> tuple[TokenIds, TokenIds, ClassIds] | str:
        target = number(row.fields["target"])
        if isinstance(target, str):
            return target
        source, places = processor.encode(row.fields["source"])
        if len(source) > longest:
            return f"{len(source)} tokens, and data.max_length={longest}: raise it to use the row"
        return source, places, target

    kept, found = encode_or_skip(rows, encoded, skipped)
    columns = _columns(found) | {"target": RaggedArray.from_rows(one[2] for one in found)}
    words, tags = ([row.fields[name] for row in kept] for name in ("source", "target"))
    examples, lengths = Examples(columns), [len(sentence) for sentence in words]
    sizes = {"words": sum(lengths), "tokens": sum(examples.lengths("source"))}
    sources, sha256 = [" ".join(sentence) for sentence in words], content_hash(zip(words, tags, strict=True))
    return SplitData(sources, tags, examples, lengths, sizes, sha256)


def _columns(
    rows: Sequence[tuple[TokenIds, TokenIds] | tuple[TokenIds, TokenIds, ClassIds]],
) -> dict[str, Column]:
    """Return the columns of tokens and places."""
    return {
        name: RaggedArray.from_rows(row[position] for row in rows)
        for position, name in enumerate(("source", "places"))
    }
