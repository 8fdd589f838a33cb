"""Language models: running text, predicted token by token."""

from pathlib import Path
from typing import Any

from foveal.config import Config
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data import prepare_corpus as text
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.text.token_batches import StreamBatches, TokenEvalBatches, WindowBatches
from foveal.data.text.token_store import TokenArray
from foveal.data.text.tokenizers import TOKENIZER_FILE, Tokenizer, load_tokenizer
from foveal.heads.decoder_lm import DecoderLM
from foveal.models.decoder import language_model
from foveal.objectives.language_model import LanguageModelObjective
from foveal.tasks.base import DataPaths, PredictedIds, TaskSummary

DEFAULT_VOCAB_SIZE = 65
"""The characters of English plays."""
EVAL_ROWS = 8
"""Streams in which a held-out text is read; each starts once without history."""


def prepare(
    config: Config,
    data_paths: DataPaths,
    log: Log,
    processor: Tokenizer | None = None,
    reused: ReusedProcessors = NO_REUSE,
) -> text.PreparedCorpus:
    return text.prepare_corpus(
        data_paths.data, config.data, data_paths.valid, data_paths.test, log, processor or reused.source
    )


def prepare_held_out(
    config: Config, data: str, processor: Tokenizer, log: Log
) -> tuple[TokenArray, dict[str, Any]]:
    return text.prepare_eval_corpus(data, config.data.text, processor, log)


def load_processor(folder: Path) -> Tokenizer:
    return load_tokenizer(folder / "text")


def processor_files(processor: Tokenizer) -> dict[str, bytes]:
    return {f"text/{TOKENIZER_FILE}": processor.to_json().encode()}


def model(config: Config, processor: Tokenizer) -> DecoderLM:
    return language_model(config.model, processor.size, config.data.context_length)


def model_of_default_size(config: Config) -> DecoderLM:
    return language_model(config.model, DEFAULT_VOCAB_SIZE, config.data.context_length)


def objective(
    config: Config, model: DecoderLM, processor: Tokenizer, preview_examples: TokenArray | None = None
) -> LanguageModelObjective:
    """Previews need no data: the model writes from nothing."""
    carry = config.data.order == "streams"
    return LanguageModelObjective(
        model, processor, carry, config.task.reduction, config.task.loss_positions, config.training.seed
    )


def train_batches(config: Config, data: TokenArray) -> StreamBatches | WindowBatches:
    """The batches of training, micro-batches of the configured number of tokens."""
    sizes, training = config.data, config.training
    rows = sizes.batch_tokens // sizes.context_length
    if sizes.order == "streams":
        return StreamBatches(
            data, rows, sizes.context_length, training.seed, training.grad_accumulation, sizes.restart
        )
    return WindowBatches(data, rows, sizes.context_length, training.seed)


def eval_batches(config: Config, data: TokenArray) -> TokenEvalBatches:
    """The whole of a held-out text, chunk by chunk."""
    return TokenEvalBatches(data, EVAL_ROWS, config.data.context_length)


def summarize(config: Config, data: text.PreparedCorpus) -> TaskSummary:
    kind, size = data.processor.kind, data.processor.size
    unit = token_unit(kind)
    return TaskSummary(unit, f"language model: predict the next of {size:,} {kind} tokens", size, unit)


def describe_size(facts: dict[str, Any]) -> str:
    tokens, documents = facts["tokens"], facts["documents"]
    return f"{tokens:,} in {documents:,} documents" if documents > 1 else f"{tokens:,}"


def predict(
    config: Config, model: DecoderLM, processor: Tokenizer, data: str, log: Log, progress: ProgressCallback
) -> None:
    """It goes on from a text, and answers no source."""


def score(
    config: Config,
    model: DecoderLM,
    processor: Tokenizer,
    data: TokenArray,
    predicted_ids: PredictedIds,
    progress: ProgressCallback,
) -> None:
    """The loss says it all."""


def token_unit(kind: str) -> str:
    """What a token is, in words."""
    return {"character": "characters", "byte": "bytes"}.get(kind, "tokens")
