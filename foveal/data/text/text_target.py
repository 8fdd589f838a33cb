"""Targets that are texts, generated token by token."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, RaggedArray
from foveal.data.core.rows import Row
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import FittingData, Target, TargetProcessor
from foveal.data.text.length_limit import LENGTH_LIMIT_FILE, LengthLimit, load_length_limit
from foveal.data.text.special_tokens import SpecialTokens, token_names
from foveal.data.text.tokenizer_base import VocabularySize
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer

TARGET_FOLDER = "target"
NO_TOKENS = LengthLimit(0)


@dataclass(frozen=True)
class TextTargetProcessor(TargetProcessor):
    """The tokenizer of the target texts, and the limit of their length."""

    tokenizer: Tokenizer
    length_limit: LengthLimit

    @property
    def eos(self) -> int:
        """The token that ends a text."""
        return SpecialTokens(self.tokenizer.size).eos

    def encode(self, text: str) -> TokenIds:
        """Return the tokens of a text with `eos`. Characters without a token are dropped."""
        return np.append(self.tokenizer.encode_known(text)[0], self.eos)

    def position_names(self, batch: ExampleBatch) -> tuple[str, ...]:
        return token_names(batch.columns["target"][0].tolist(), self.tokenizer)

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        tokens: list[int] = columns["target"].tolist()
        return self.tokenizer.decode(tokens[: tokens.index(self.eos)])


@dataclass(frozen=True)
class SizedTextTarget:
    """Stands for the processor of target texts where only the number of their tokens matters, and
    none are written."""

    tokenizer: VocabularySize
    length_limit: LengthLimit = NO_TOKENS


class TextTarget(Target[TextTargetProcessor]):
    """A text for each source, from the column that the setting `data.text` or another setting names."""

    field = "target"
    is_text = True
    is_stored = True
    model_sizes = ("vocabulary",)

    def __init__(self, setting: str = "text"):
        self.setting = setting
        self.settings = (f"data.{setting}", "data.tokenizer", "data.vocab_size", "data.max_length")

    def column(self, config: DataConfig) -> str:
        name: str = getattr(config, self.setting)
        return name

    def fit(self, fitting: FittingData) -> TextTargetProcessor:
        source, processor, config = fitting.source, fitting.source_processor, fitting.config
        tokenizer = self.make_tokenizer(self._texts(fitting.rows), source, processor, config)
        ratio = source.length_ratio(fitting.usable, processor, lambda row: self._count(row, tokenizer))
        return TextTargetProcessor(
            tokenizer, LengthLimit.from_texts(tokenizer, self._texts(fitting.rows), config.max_length, ratio)
        )

    def sized_processor(self, sizes: Mapping[str, int]) -> SizedTextTarget:
        return SizedTextTarget(VocabularySize(sizes["vocabulary"]))

    def make_tokenizer(
        self, texts: Iterable[str], source: Source[Any], source_processor: Any, config: DataConfig
    ) -> Tokenizer:
        """Return the tokenizer of the target texts, which may be of another kind than the source's
        tokenizer."""
        shared: Tokenizer | None = source.shared_tokenizer(source_processor, config)
        if shared is not None:
            return shared
        kind = config.tokenizer
        if source.has_tokenizer and config.target_tokenizer != "same":
            kind = config.target_tokenizer
        return make_tokenizer(kind, config.vocab_size, texts)

    def _texts(self, rows: Sequence[Row]) -> Iterator[str]:
        return (row.fields[self.field] for row in rows)

    def _count(self, row: Row, tokenizer: Tokenizer) -> int:
        return len(tokenizer.encode_known(row.fields[self.field])[0])

    def files(self, processor: TextTargetProcessor, source_processor: Any) -> dict[str, bytes]:
        files = {LENGTH_LIMIT_FILE: processor.length_limit.to_json().encode()}
        if processor.tokenizer is source_processor:
            return files
        return {f"{TARGET_FOLDER}/{TOKENIZER_FILE}": processor.tokenizer.to_json().encode(), **files}

    def load(self, folder: Path, source_processor: Any) -> TextTargetProcessor:
        is_separate = (folder / TARGET_FOLDER).is_dir() or not isinstance(source_processor, Tokenizer)
        tokenizer = load_tokenizer(folder / TARGET_FOLDER) if is_separate else source_processor
        return TextTargetProcessor(tokenizer, load_length_limit(folder))

    def encode(self, row: Row, processor: TextTargetProcessor, config: DataConfig) -> TokenIds | str:
        tokens = processor.encode(row.fields[self.field])
        if len(tokens) > config.max_length:
            return f"{len(tokens)} tokens, and data.max_length={config.max_length}: train with more"
        return tokens

    def columns(self, values: list[Any]) -> dict[str, Column]:
        return {"target": RaggedArray.from_rows(values)}

    def sizes(self, rows: Sequence[Row], values: list[Any]) -> dict[str, int]:
        return {
            "target_tokens": sum(map(len, values)),
            "characters": sum(map(len, self.references(rows))),
        }
