"""Texts with a label each: two columns of a table, to tokens and class numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.classes import class_names, names_to_json, numbering, open_names
from foveal.data.core.examples import Column, Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep, read_rows
from foveal.data.core.split_data import Part, hashed, in_words
from foveal.data.text import unlabeled_texts
from foveal.data.text.special_tokens import framed
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer

LABELS = "labels.json"


@dataclass(frozen=True)
class LabelInputs:
    """The tokenizer of the texts, and the classes in the order of their numbers."""

    source: Tokenizer
    labels: tuple[str, ...]

    def encode(self, text: str, longest: int) -> Ids:
        """The first tokens, at most `longest` with the marks around them; unknown characters are left out."""
        return framed(self.source.encode_known(text)[0], self.source, longest)

    def files(self) -> dict[str, bytes]:
        return {f"text/{FILE}": self.source.to_json().encode(), LABELS: names_to_json(self.labels)}


def open_inputs(folder: Path) -> LabelInputs:
    """What `LabelInputs.files` gave, below `folder`."""
    return LabelInputs(load_tokenizer(folder / "text"), open_names(folder / LABELS))


def read(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The rows of a table as fields `source` and `label`."""
    for row in read_rows(Path(data), (config.column, config.label)):
        if isinstance(row, Aside):
            aside.append(row)
        else:
            text, label = (row.fields[name].strip() for name in (config.column, config.label))
            yield Row(row.place, {"source": text, "label": label})


def read_questions(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """Texts without labels."""
    return unlabeled_texts.read_questions(Path(data), config.column, aside)


def encode_questions(
    rows: list[Row], inputs: LabelInputs, config: DataConfig, aside: list[Aside]
) -> tuple[list[Row], Examples]:
    """Of a longer text than the model reads, its beginning."""
    sources = (inputs.encode(row.fields["source"], config.longest) for row in rows)
    return rows, Examples({"source": Ragged.from_rows(sources)})


def make_inputs(data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> LabelInputs:
    labels = class_names(
        data,
        (row.fields["label"] for row in rows),
        f"all {len(rows):,} rows to train on have the label",
        " (data.label=NAME is the column)",
        taken.labels,
    )
    if len(labels) > len(rows) // 2 and len(rows) > 4:
        raise UserError(
            f"{data}: {len(labels):,} labels in {len(rows):,} rows: is '{config.label}' the column of the "
            "classes? (data.label=NAME)"
        )
    texts = (row.fields["source"] for row in rows)
    source = taken.source or make_tokenizer(config.tokenizer, config.vocabulary, texts)
    return LabelInputs(source, labels)


def encode(rows: list[Row], inputs: LabelInputs, config: DataConfig, aside: list[Aside]) -> Part[Examples]:
    """Columns `source` (tokens with a stop) and `label`."""
    number = numbering(inputs.labels)
    kept, numbers = keep(rows, lambda row: number([row.fields["label"]]), aside)
    sources, labels = ([row.fields[name] for row in kept] for name in ("source", "label"))
    columns: dict[str, Column] = {
        "source": Ragged.from_rows(inputs.encode(source, config.longest) for source in sources),
        "label": np.array(numbers, np.int64).reshape(-1),
    }
    examples = Examples(columns)
    sizes = {"tokens": sum(examples.lengths("source")), "characters": sum(map(len, sources))}
    sha256 = hashed(zip(sources, labels, strict=True))
    return Part(sources, labels, examples, in_words(sources), sizes, sha256)
