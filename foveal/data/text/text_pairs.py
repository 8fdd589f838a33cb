"""Sentence pairs: two columns of a table, or two aligned files, to tokens of two vocabularies."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.examples import Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep, read_rows
from foveal.data.core.split_data import Part, hashed, in_words
from foveal.data.files.aligned import read_aligned
from foveal.data.text import unlabeled_texts
from foveal.data.text.length_limit import FILE as ROOM
from foveal.data.text.length_limit import Room, read_room
from foveal.data.text.special_tokens import Marks, framed
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer

SAMPLED = 1000
"""Pairs that the ratio of lengths is measured on, spread over all."""


@dataclass(frozen=True)
class PairInputs:
    """The tokenizers of source and target (one and the same if the vocabulary is joint).

    `room` says how long a target may become.
    """

    source: Tokenizer
    target: Tokenizer
    room: Room

    @property
    def joint(self) -> bool:
        return self.source is self.target

    def encode_source(self, text: str) -> Ids:
        """The tokens with the marks. Characters without a token are left out."""
        return framed(self.source.encode_known(text)[0], self.source)

    def encode_target(self, text: str) -> Ids:
        return np.append(self.target.encode_known(text)[0], Marks(self.target.size).stop)

    def files(self) -> dict[str, bytes]:
        sides = {"text": self.source} if self.joint else {"source": self.source, "target": self.target}
        files = {f"{side}/{FILE}": tokenizer.to_json().encode() for side, tokenizer in sides.items()}
        return files | {ROOM: self.room.to_json().encode()}


def open_inputs(folder: Path) -> PairInputs:
    """What `PairInputs.files` gave, below `folder`."""
    room = read_room(folder)
    if (folder / "text").is_dir():
        joint = load_tokenizer(folder / "text")
        return PairInputs(joint, joint, room)
    return PairInputs(load_tokenizer(folder / "source"), load_tokenizer(folder / "target"), room)


def read(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The pairs of a table, or of two aligned files `a,b`, as fields `source` and `target`."""
    columns = (config.source, config.target)
    first, comma, second = data.partition(",")
    if comma and not Path(data).exists():
        found = read_aligned(Path(first), Path(second), columns)
    else:
        found = read_rows(Path(data), columns)
    for row in found:
        if isinstance(row, Aside):
            aside.append(row)
        else:
            source, target = (row.fields[column] for column in columns)
            yield Row(row.place, {"source": source.strip(), "target": target.strip()})


def read_questions(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """Sources without targets."""
    return unlabeled_texts.read_questions(Path(data), config.source, aside)


def encode_questions(
    rows: list[Row], inputs: PairInputs, config: DataConfig, aside: list[Aside]
) -> tuple[list[Row], Examples]:
    def encoded(row: Row) -> Ids | str:
        return unlabeled_texts.readable(inputs.encode_source(row.fields["source"]), config.longest)

    kept, sources = keep(rows, encoded, aside)
    return kept, Examples({"source": Ragged.from_rows(sources)})


def make_inputs(data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> PairInputs:
    sources, targets = ([row.fields[side] for row in rows] for side in ("source", "target"))
    kind, size = config.tokenizer, config.vocabulary
    if config.joint:
        source = target = taken.source or make_tokenizer(kind, size, [*sources, *targets])
    else:
        other = kind if config.target_tokenizer == "same" else config.target_tokenizer
        source = taken.source or make_tokenizer(kind, size, sources)
        target = make_tokenizer(other, size, targets)
    some = slice(None, None, len(rows) // SAMPLED + 1)
    ratio = _tokens(target, targets[some]) / _tokens(source, sources[some])
    return PairInputs(source, target, Room.of_texts(target, targets, config.longest, ratio))


def _tokens(tokenizer: Tokenizer, texts: list[str]) -> int:
    return sum(len(tokenizer.encode_known(text)[0]) for text in texts) or 1


def encode(rows: list[Row], inputs: PairInputs, config: DataConfig, aside: list[Aside]) -> Part[Examples]:
    """Columns `source` and `target` of tokens, each with its stop."""
    longest = config.longest

    def encoded(row: Row) -> tuple[Ids, Ids] | str:
        source = inputs.encode_source(row.fields["source"])
        target = inputs.encode_target(row.fields["target"])
        if max(len(source), len(target)) > longest:
            sizes = f"{len(source)} and {len(target)} tokens"
            return f"{sizes}, and data.longest={longest}: raise it to use the row"
        return source, target

    kept, found = keep(rows, encoded, aside)
    columns = {
        "source": Ragged.from_rows(source for source, _ in found),
        "target": Ragged.from_rows(target for _, target in found),
    }
    sources, targets = ([row.fields[side] for row in kept] for side in ("source", "target"))
    examples = Examples(columns)
    sizes = {
        "source_tokens": sum(examples.lengths("source")),
        "target_tokens": sum(examples.lengths("target")),
        "characters": sum(map(len, targets)),
    }
    sha256 = hashed(zip(sources, targets, strict=True))
    return Part(sources, targets, examples, in_words(sources), sizes, sha256)
