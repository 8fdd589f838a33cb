"""Sentence pairs: two columns of a table, or two aligned files, to tokens of two vocabularies."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash, word_counts
from foveal.data.files.aligned import read_aligned
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import read_rows
from foveal.data.text import unlabeled_texts
from foveal.data.text.length_limit import LENGTH_LIMIT_FILE, LengthLimit, load_length_limit
from foveal.data.text.special_tokens import SpecialTokens, add_special_tokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer

RATIO_SAMPLE = 1000
"""Pairs that the ratio of lengths is measured on, spread over all."""


@dataclass(frozen=True)
class TextPairProcessor:
    """The tokenizers of source and target (one and the same if the vocabulary is joint).

    `length_limit` says how long a target may become.
    """

    source: Tokenizer
    target: Tokenizer
    length_limit: LengthLimit

    @property
    def shared_vocabulary(self) -> bool:
        return self.source is self.target

    def encode_source(self, text: str) -> TokenIds:
        """The tokens with the marks. Characters without a token are left out."""
        return add_special_tokens(self.source.encode_known(text)[0], self.source)

    def encode_target(self, text: str) -> TokenIds:
        return np.append(self.target.encode_known(text)[0], SpecialTokens(self.target.size).eos)

    def files(self) -> dict[str, bytes]:
        sides = (
            {"text": self.source}
            if self.shared_vocabulary
            else {"source": self.source, "target": self.target}
        )
        files = {
            f"{side}/{TOKENIZER_FILE}": tokenizer.to_json().encode() for side, tokenizer in sides.items()
        }
        return files | {LENGTH_LIMIT_FILE: self.length_limit.to_json().encode()}


def load_processor(folder: Path) -> TextPairProcessor:
    """What `TextPairProcessor.files` gave, below `folder`."""
    room = load_length_limit(folder)
    if (folder / "text").is_dir():
        joint = load_tokenizer(folder / "text")
        return TextPairProcessor(joint, joint, room)
    return TextPairProcessor(load_tokenizer(folder / "source"), load_tokenizer(folder / "target"), room)


def read(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The pairs of a table, or of two aligned files `a,b`, as fields `source` and `target`."""
    columns = (config.source, config.target)
    found = read_aligned(*part.aligned, columns) if part.aligned else read_rows(part.path, columns)
    for row in found:
        if isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            source, target = (row.fields[column] for column in columns)
            yield Row(row.location, {"source": source.strip(), "target": target.strip()})


def read_unlabeled(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Sources without targets."""
    return unlabeled_texts.read_unlabeled(part, config.source, skipped)


def encode_unlabeled(
    rows: list[Row], processor: TextPairProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> tuple[list[Row], Examples]:
    def encoded(row: Row) -> TokenIds | str:
        return unlabeled_texts.check_length(processor.encode_source(row.fields["source"]), config.max_length)

    kept, sources = encode_or_skip(rows, encoded, skipped)
    return kept, Examples({"source": RaggedArray.from_rows(sources)})


def make_processor(
    data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
) -> TextPairProcessor:
    sources, targets = ([row.fields[side] for row in rows] for side in ("source", "target"))
    kind, size = config.tokenizer, config.vocab_size
    if config.shared_vocabulary:
        source = target = reused.source or make_tokenizer(kind, size, [*sources, *targets])
    else:
        other = kind if config.target_tokenizer == "same" else config.target_tokenizer
        source = reused.source or make_tokenizer(kind, size, sources)
        target = make_tokenizer(other, size, targets)
    some = slice(None, None, len(rows) // RATIO_SAMPLE + 1)
    ratio = _count_tokens(target, targets[some]) / _count_tokens(source, sources[some])
    return TextPairProcessor(
        source, target, LengthLimit.from_texts(target, targets, config.max_length, ratio)
    )


def _count_tokens(tokenizer: Tokenizer, texts: list[str]) -> int:
    return sum(len(tokenizer.encode_known(text)[0]) for text in texts) or 1


def encode(
    rows: list[Row], processor: TextPairProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> SplitData[Examples]:
    """Columns `source` and `target` of tokens, each with its stop."""
    longest = config.max_length

    def encoded(row: Row) -> tuple[TokenIds, TokenIds] | str:
        source = processor.encode_source(row.fields["source"])
        target = processor.encode_target(row.fields["target"])
        if max(len(source), len(target)) > longest:
            sizes = f"{len(source)} and {len(target)} tokens"
            return f"{sizes}, and data.max_length={longest}: raise it to use the row"
        return source, target

    kept, found = encode_or_skip(rows, encoded, skipped)
    columns = {
        "source": RaggedArray.from_rows(source for source, _ in found),
        "target": RaggedArray.from_rows(target for _, target in found),
    }
    sources, targets = ([row.fields[side] for row in kept] for side in ("source", "target"))
    examples = Examples(columns)
    sizes = {
        "source_tokens": sum(examples.lengths("source")),
        "target_tokens": sum(examples.lengths("target")),
        "characters": sum(map(len, targets)),
    }
    sha256 = content_hash(zip(sources, targets, strict=True))
    return SplitData(sources, targets, examples, word_counts(sources), sizes, sha256)
