"""Tasks that read a corpus of text as tokens."""

from abc import ABC
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.files.lines import Line
from foveal.data.open import DataPaths
from foveal.data.prepare_corpus import prepare_corpus, prepare_eval_corpus
from foveal.data.text.tokenizer_base import VocabularySize
from foveal.data.text.tokenizers import TOKENIZER_FILE, Tokenizer, load_tokenizer
from foveal.models.stack_settings import keys_below
from foveal.tasks.base import FEW_HELD_OUT, Task
from foveal.tasks.results import AnsweredRow

CORPUS_SETTINGS = (
    *("text", "encoding", "tokenizer", "vocab_size", "context_length", "batch_tokens"),
    *("valid_fraction", "test_fraction"),
)
"""The settings below `data` that a corpus is read by, cut into tokens and batches."""
NO_PREDICTIONS = "a language model has no predictions for rows: use foveal generate or evaluate"
LOSS_IS_SCORE = "the score of a language model is its loss"


class CorpusTask(Task, ABC):
    """Base class of tasks that predict the tokens of a text.

    The loss is the score, and there are no targets.
    """

    source_kind = "text"
    target_kind = "nothing"
    columns = ("text",)
    refused_settings: ClassVar[Mapping[str, str]] = {"label_smoothing": LOSS_IS_SCORE}

    @classmethod
    def fixed_settings(cls) -> tuple[str, ...]:
        return "data.tokenizer", "data.vocab_size"

    def settings_read(self) -> set[str]:
        return super().settings_read() | keys_below("data", CORPUS_SETTINGS)

    def check(self) -> None:
        super().check()
        sizes = self.config.data
        if sizes.batch_tokens < sizes.context_length:
            raise ValueError(
                f"data.batch_tokens={sizes.batch_tokens} is less than one row of "
                f"data.context_length={sizes.context_length} tokens"
            )

    def prepare(
        self, paths: DataPaths, log: Log, reused: ReusedProcessors = NO_REUSE
    ) -> PreparedData[Any, Any]:
        tokenizer = self.processor or reused.source
        return prepare_corpus(paths.data, self.config.data, paths.valid, paths.test, log, tokenizer)

    def prepare_held_out(self, data: str, log: Log) -> tuple[Any, dict[str, Any]]:
        return prepare_eval_corpus(data, self.config.data, self.processor, log)

    @property
    def model_sizes(self) -> tuple[str, ...]:
        return ("vocabulary",)

    def sized_processor(self, sizes: Mapping[str, int]) -> VocabularySize:
        return VocabularySize(sizes["vocabulary"])

    @property
    def row_size(self) -> int:
        return self.config.data.context_length

    def load_processor(self, folder: Path) -> Tokenizer:
        return load_tokenizer(folder / "text")

    def processor_files(self) -> dict[str, bytes]:
        return {f"text/{TOKENIZER_FILE}": self.processor.to_json().encode()}

    def describe_size(self, facts: dict[str, Any]) -> str:
        tokens, documents = facts["tokens"], facts["documents"]
        return f"{tokens:,} in {documents:,} documents" if documents > 1 else f"{tokens:,}"

    def held_out_note(self, facts: Mapping[str, dict[str, Any]]) -> str:
        documents = {name: part["documents"] for name, part in facts.items() if name != "train"}
        few = [f"{count:,} in {name}" for name, count in documents.items() if count < FEW_HELD_OUT]
        if not few:
            return ""
        cut = " (a single file is cut in parts)" if facts["train"]["documents"] == 1 else ""
        return f"few documents, {' and '.join(few)}{cut}: the loss is that of these texts; others may differ"

    def predict(self, data: str, top: int, log: Log, progress: ProgressCallback) -> list[AnsweredRow]:
        raise UserError(NO_PREDICTIONS)

    def predict_lines(self, lines: Iterable[Line], top: int) -> Iterator[AnsweredRow]:
        raise UserError(NO_PREDICTIONS)

    reads_text = True

    def unlabeled_split(self, data: str, log: Log) -> Any:
        return self.prepare_held_out(data, log)[0]  # a text is its own reference

    def processor_to_reuse(self, new_task: Task) -> Tokenizer:
        tokenizer: Tokenizer = self.processor
        return tokenizer


def token_unit(kind: str) -> str:
    """Return the name of a tokenizer's tokens."""
    return {"character": "characters", "byte": "bytes"}.get(kind, "tokens")
