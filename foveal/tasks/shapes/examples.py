"""Tasks that learn from examples: rows with a source and usually a target."""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from torch import Tensor

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.data import prepare_examples
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import RowIndices
from foveal.data.core.hash_split import SplitName
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, source_text
from foveal.data.core.split_data import SplitData
from foveal.data.files.lines import Line
from foveal.data.open import DataPaths, OpenedData, open_path
from foveal.data.pairs.pair import PairFormat, PairProcessor
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import Target
from foveal.data.read_splits import open_splits
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.tokenizer_base import Vocabulary
from foveal.data.text.tokenizers import Tokenizer
from foveal.data.text.unknown_tokens import check_known_sources
from foveal.inspection.chosen_input import ChosenInput
from foveal.models.encoder_registry import TokenSizes
from foveal.tasks.base import Task
from foveal.tasks.defaults import MAX_COUNTED_ROWS
from foveal.tasks.results import Answer, AnsweredRow
from foveal.tasks.shapes.answered_rows import answer_data, answer_lines, answer_texts
from foveal.tasks.shapes.embeddings import data_rows, embed_rows, text_rows
from foveal.training.protocols import Batches

SPLIT_SETTINGS = (
    "data.valid_fraction",
    "data.test_fraction",
    "data.group_pattern",
    "data.group_by",
    "data.hold_out",
)
"""The settings by which rows are held out."""


def default_vocab_size(config: Config) -> int:
    """Return the default vocabulary size of the configured tokenizer."""
    return {"character": 100, "byte": 256}.get(config.data.tokenizer, config.data.vocab_size)


def token_vocab_size(config: Config, source: Vocabulary | None) -> int:
    """Return the number of a tokenizer's tokens and of the special tokens.

    Without a tokenizer, use the default vocabulary size.
    """
    return SpecialTokens(default_vocab_size(config) if source is None else source.size).vocab_size


def token_sizes(config: Config, source: Vocabulary | None) -> TokenSizes:
    """Return the sizes of a tokenizer's texts. Without a tokenizer, use the default vocabulary size."""
    return TokenSizes(token_vocab_size(config, source), config.data.max_length)


def tokens_in_words(tokenizer: Tokenizer) -> str:
    """Return a description of the tokens of a tokenizer."""
    return f"{tokenizer.size:,} {tokenizer.kind} tokens"


class ExampleTask(Task, ABC):
    """A task whose data are examples of a source and a target."""

    source: ClassVar[Source[Any]]
    """The source of the task."""
    target: ClassVar[Target[Any]]
    """The target of the task."""

    @property
    def data_format(self) -> PairFormat:
        """The format of the examples."""
        return PairFormat(self.source, self.target)

    @classmethod
    def fixed_settings(cls) -> tuple[str, ...]:
        return cls.source.fixed_settings

    def settings_read(self) -> set[str]:
        return super().settings_read() | {*self.data_format.settings, *SPLIT_SETTINGS}

    def prepare(
        self, paths: DataPaths, log: Log, reused: ReusedProcessors = NO_REUSE
    ) -> PreparedData[Any, Any]:
        return prepare_examples.prepare_examples(
            self.data_format,
            paths.data,
            paths.valid,
            paths.test,
            self.config.data,
            log,
            self.processor,
            reused,
        )

    def labeled_splits(self, data: OpenedData) -> Collection[SplitName]:
        return open_splits(data, None, None, self.data_format, self.config.data, lambda line: None)

    def prepare_held_out(self, data: str, log: Log) -> tuple[Any, dict[str, Any]]:
        try:
            return prepare_examples.prepare_eval_examples(
                self.data_format, data, self.config.data, self.processor, log
            )
        except UserError as error:
            if self._reads_sources(data):
                raise UserError(f"{error}; for answers without a score: foveal predict RUN DATA") from None
            raise

    def _reads_sources(self, data: str) -> bool:
        """Return whether a source of `data` can be read, so that the targets are wrong or missing."""
        with suppress(UserError):
            part = open_path(data, self.config.data.encoding).sources(self.data_format.source.table)
            rows = self.data_format.read_in_order(part, self.config.data)
            return any(isinstance(row, Row) for row in rows)
        return False

    @property
    def model_sizes(self) -> tuple[str, ...] | None:
        return self.data_format.model_sizes

    def sized_processor(self, sizes: Mapping[str, int]) -> PairProcessor:
        return self.data_format.sized_processor(sizes, self.config.data)

    def load_processor(self, folder: Path) -> Any:
        return self.data_format.load_processor(folder)

    def processor_files(self) -> dict[str, bytes]:
        return self.data_format.files(self.processor)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.processor.target.labels

    def processor_for(self, config: Config) -> PairProcessor:
        return replace(
            self.processor, source=self.data_format.source.for_config(self.processor.source, config.data)
        )

    def train_batches(self, data: Any) -> Batches:
        batches: Batches = self.data_format.source.train_batches(
            data.examples, self.config.data, self.config.training.seed
        )
        return batches

    def eval_batches(self, data: Any) -> Batches:
        return self.example_batches(data.examples)

    def example_batches(self, examples: Any) -> Batches:
        """Return batches that contain every example once."""
        batches: Batches = self.data_format.source.eval_batches(examples, self.config.data)
        return batches

    def eval_batch(self, examples: Any, rows: RowIndices) -> ExampleBatch:
        """Return a batch of the examples at the indices `rows` (B,), without augmentation."""
        return self.data_format.source.collate(examples, rows)

    def training_targets(self, data: OpenedData) -> list[Any]:
        """Return the targets of the training split, `MAX_COUNTED_ROWS` at most.

        Rows that are still to be held out count as well. Empty if the data can't be read, which their reader
        reports, or are still to be made.
        """
        if data.kind == "missing":
            return []
        with suppress(UserError):
            return self.source.targets(data.train, self.target, self.config.data, MAX_COUNTED_ROWS)
        return []

    def fit_inputs(self, data: Any) -> tuple[Tensor, ...]:
        return self.source.fit_inputs(data.examples, self.config.training.seed)

    def predict(self, data: str, top: int, log: Log, progress: ProgressCallback) -> list[AnsweredRow]:
        return answer_data(self, data, top, log, progress)

    def predict_lines(self, lines: Iterable[Line], top: int) -> Iterator[AnsweredRow]:
        if not self.source.reads_lines:
            return super().predict_lines(lines, top)
        return answer_lines(self, lines, top)

    def predict_texts(self, texts: Sequence[str], top: int, progress: ProgressCallback) -> list[AnsweredRow]:
        if not self.source.reads_lines:
            return super().predict_texts(texts, top, progress)
        return answer_texts(self, texts, top, progress)

    def embed(self, data: str | Sequence[str], progress: ProgressCallback) -> Tensor:
        rows = data_rows(self, data) if isinstance(data, str) else text_rows(self, data)
        return embed_rows(self, rows, progress)

    def try_outputs(self, train: Any, held_out: Any) -> float:
        if not self.writes_answers:
            return 0.0
        batches = self.eval_batches(held_out)
        rows = batches.batch(0, (batches.per_epoch - 1) // 2).rows.tolist()
        self.model.eval()
        started = time.perf_counter()
        self.answers(held_out.examples.subset(rows), 1, no_progress)
        # Batches take about the same time, but the last may be small.
        return (time.perf_counter() - started) * min(batches.per_epoch, len(held_out) / len(rows))

    @property
    def reads_text(self) -> bool:
        return self.source.reads_lines

    def unlabeled_split(self, data: str, log: Log) -> SplitData[Any]:
        rows, examples, _ = prepare_examples.read_unlabeled(
            self.data_format, data, self.processor, self.config.data, log
        )
        return SplitData([source_text(row) for row in rows], [], examples, [], {}, "")

    def count_inputs(self, split: SplitData[Any]) -> int:
        return len(split)

    def input_of_row(self, split: SplitData[Any], row: int) -> ChosenInput:
        batch, objective = self.eval_batch(split.examples, np.array([row])), cast(Any, self.objective())
        # A negative label does not occur in the training data, so it has no probability.
        is_known = bool(split.references) and int(batch.columns.get("label", batch.rows).min()) >= 0
        if not is_known:
            batch = objective.with_own_answer(batch)
        reference = split.references[row] if is_known else None
        return ChosenInput(
            batch,
            self.data_format.source.position_names(batch, split.sources[row], self.processor.source),
            self.target_names(split.examples, row, batch),
            objective,
            " ".join(reference) if isinstance(reference, list) else reference,
            self.source.pixels(split.examples, row),
        )

    def target_names(self, examples: Any, row: int, batch: ExampleBatch) -> tuple[str, ...]:
        """Return the name of each scored target of a row, which is the only one of a batch."""
        names: tuple[str, ...] = self.processor.target.position_names(batch)
        return names

    def input_of_text(self, text: str) -> ChosenInput:
        check_known_sources("--text", self.processor.source, [text])
        line, skipped = self.data_format.source.line_row("--text", text.strip()), list[SkippedRow]()
        rows, examples = self.data_format.encode_unlabeled([line], self.processor, self.config.data, skipped)
        if not rows:
            raise UserError(f"--text: {skipped[0].reason}")
        return self.input_of_row(SplitData([source_text(line)], [], examples, [], {}, ""), 0)

    @abstractmethod
    def answers(self, examples: Any, top: int, progress: ProgressCallback) -> list[Answer]:
        """Return the model's answer to each source with the `top` likeliest ones, in the examples' order."""

    def predicted_texts(self, examples: Any, progress: ProgressCallback) -> list[str]:
        """Return the model's answer to each source as text, in the examples' order."""
        return [answer.line for answer in self.answers(examples, 1, progress)]
