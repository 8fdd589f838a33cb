"""Sentences with a tag a word: CoNLL or JSON lines, to tokens, each word's place in them, and tag numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.classes import Numbers, class_names, names_to_json, numbering, open_names
from foveal.data.core.examples import Column, Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.files.tables import SUFFIXES, columns_of
from foveal.data.text import unlabeled_texts
from foveal.data.text.conll import read_tagged
from foveal.data.text.special_tokens import framed
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer

TAGS = "tags.json"


@dataclass(frozen=True)
class TagInputs:
    """The tokenizer of the words, and the tags in the order of their numbers."""

    source: Tokenizer
    labels: tuple[str, ...]

    def encode(self, words: Sequence[str]) -> tuple[Ids, Ids]:
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
        return framed(np.concatenate(tokens), self.source), found + int(self.source.opened)

    def files(self) -> dict[str, bytes]:
        return {f"text/{FILE}": self.source.to_json().encode(), TAGS: names_to_json(self.labels)}


def open_inputs(folder: Path) -> TagInputs:
    """What `TagInputs.files` gave, below `folder`."""
    return TagInputs(load_tokenizer(folder / "text"), open_names(folder / TAGS))


def read(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The sentences of a file as fields `source` (words) and `target` (tags)."""
    for row in read_tagged(Path(data), config.tags):
        if isinstance(row, Aside):
            aside.append(row)
        else:
            yield Row(row.place, {"source": row.fields["tokens"], "target": row.fields["tags"]})


def read_questions(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """Sentences, words with white space between: a line each, or a column of a table; or those of a file as
    for training, with tags or without."""
    path = Path(data)
    suffix = path.suffix.lower()
    if suffix in (".conllu", ".conll") or (suffix in SUFFIXES and "tokens" in columns_of(path)):
        for found in read_tagged(path, None):
            if isinstance(found, Aside):
                aside.append(found)
            else:
                yield Row(found.place, {"source": found.fields["tokens"]})
        return
    for row in unlabeled_texts.read_questions(path, config.column, aside):
        yield Row(row.place, {"source": row.fields["source"].split()})


def encode_questions(
    rows: list[Row], inputs: TagInputs, config: DataConfig, aside: list[Aside]
) -> tuple[list[Row], Examples]:
    def encoded(row: Row) -> tuple[Ids, Ids] | str:
        source, places = inputs.encode(row.fields["source"])
        found = unlabeled_texts.readable(source, config.longest)
        return found if isinstance(found, str) else (found, places)

    kept, found = keep(rows, encoded, aside)
    return kept, Examples(_columns(found))


def make_inputs(data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> TagInputs:
    found = (tag for row in rows for tag in row.fields["target"])
    tags = class_names(data, found, "all words have the tag", " (data.tags=NAME)", taken.labels)
    texts = (" " + " ".join(row.fields["source"]) for row in rows)
    source = taken.source or make_tokenizer(config.tokenizer, config.vocabulary, texts)
    return TagInputs(source, tags)


def encode(rows: list[Row], inputs: TagInputs, config: DataConfig, aside: list[Aside]) -> Part[Examples]:
    """Columns `source`, `places` and `target` (tag numbers)."""
    number, longest = numbering(inputs.labels), config.longest

    def encoded(row: Row) -> tuple[Ids, Ids, Numbers] | str:
        target = number(row.fields["target"])
        if isinstance(target, str):
            return target
        source, places = inputs.encode(row.fields["source"])
        if len(source) > longest:
            return f"{len(source)} tokens, and data.longest={longest}: raise it to use the row"
        return source, places, target

    kept, found = keep(rows, encoded, aside)
    columns = _columns(found) | {"target": Ragged.from_rows(one[2] for one in found)}
    words, tags = ([row.fields[name] for row in kept] for name in ("source", "target"))
    examples, lengths = Examples(columns), [len(sentence) for sentence in words]
    sizes = {"words": sum(lengths), "tokens": sum(examples.lengths("source"))}
    sources, sha256 = [" ".join(sentence) for sentence in words], hashed(zip(words, tags, strict=True))
    return Part(sources, tags, examples, lengths, sizes, sha256)


def _columns(found: Sequence[tuple[Ids, Ids] | tuple[Ids, Ids, Numbers]]) -> dict[str, Column]:
    """Of tokens and places."""
    return {name: Ragged.from_rows(one[at] for one in found) for at, name in enumerate(("source", "places"))}
