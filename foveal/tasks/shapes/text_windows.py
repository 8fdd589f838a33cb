"""Tasks that read a corpus in windows with special tokens, as encoders of texts do."""

from abc import ABC
from typing import Any

from foveal.core.log import Log
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.open import DataPaths
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_windows import TextWindows, TokenizedText
from foveal.data.text.tokenizers import Tokenizer
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.corpus import CorpusTask, token_unit
from foveal.tasks.shapes.examples import default_vocab_size


class TextWindowsTask(CorpusTask, ABC):
    """Base class of tasks with windows of a text."""

    batches: type[TextWindows]
    """The windows."""
    model_in_words: str
    """The kind of model and what it predicts, such as masked language model: predict hidden tokens."""

    def prepare(
        self, paths: DataPaths, log: Log, reused: ReusedProcessors = NO_REUSE
    ) -> PreparedData[Any, Any]:
        corpus = super().prepare(paths, log, reused)
        train, valid, test = (
            None if tokens is None else TokenizedText(tokens, corpus.processor)
            for tokens in (corpus.train, corpus.valid, corpus.test)
        )
        assert train is not None
        return PreparedData(corpus.processor, train, valid, test, corpus.facts)

    def prepare_held_out(self, data: str, log: Log) -> tuple[TokenizedText, dict[str, Any]]:
        tokens, facts = super().prepare_held_out(data, log)
        return TokenizedText(tokens, self.processor), facts

    def planned_sizes(self) -> dict[str, int]:
        return {"vocabulary": default_vocab_size(self.config)}

    def train_batches(self, data: TokenizedText) -> TextWindows:
        """Return windows of `data.context_length` tokens, with other choices in each epoch."""
        sizes, seed = self.config.data, self.config.training.seed
        rows = sizes.batch_tokens // sizes.context_length
        return self.batches.for_training(data, rows, sizes.context_length, seed)

    def eval_batches(self, data: TokenizedText) -> TextWindows:
        """Return a whole held-out text, with the same choices each time."""
        sizes = self.config.data
        rows = sizes.batch_tokens // sizes.context_length
        return self.batches.for_evaluation(data, rows, sizes.context_length)

    def windows(self, text: TokenizedText) -> TextWindows:
        """Return a whole text, one window in each batch."""
        return self.batches.for_evaluation(text, 1, self.config.data.context_length)

    @property
    def num_outcomes(self) -> int:
        return SpecialTokens(self.processor.size).vocab_size

    def summarize(self, prepared: PreparedData[Tokenizer, TokenizedText]) -> TaskSummary:
        kind, size = prepared.processor.kind, prepared.processor.size
        unit = token_unit(kind)
        task = f"{self.model_in_words} of {size:,} {kind} tokens"
        return TaskSummary(unit, task, self.num_outcomes, unit)
