"""Masked language models: running text, its hidden tokens guessed from both sides."""

from typing import Any

from foveal.config import Config, ConfigError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.text.masked_lm_batches import MaskedBatches, TokenizedText
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.tokenizers import Tokenizer
from foveal.heads.masked_lm import MaskedLMHead
from foveal.layers.embedding import Embedding
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.objectives.masked_lm import MaskedLMObjective
from foveal.tasks import language_model
from foveal.tasks.base import DataPaths, PredictedIds, TaskSummary
from foveal.tasks.examples import default_vocab_size

PREVIEW_TOKENS = 48
"""Tokens of the text whose gaps a preview fills."""

load_processor = language_model.load_processor
processor_files = language_model.processor_files
describe_size = language_model.describe_size
predict = language_model.predict


def prepare(
    config: Config,
    data_paths: DataPaths,
    log: Log,
    processor: Tokenizer | None = None,
    reused: ReusedProcessors = NO_REUSE,
) -> PreparedData[Tokenizer, TokenizedText]:
    """The text as a language model has it."""
    found = language_model.prepare(config, data_paths, log, processor, reused)
    train, valid, test = (
        None if tokens is None else TokenizedText(tokens, found.processor)
        for tokens in (found.train, found.valid, found.test)
    )
    assert train is not None
    return PreparedData(found.processor, train, valid, test, found.facts)


def prepare_held_out(
    config: Config, data: str, processor: Tokenizer, log: Log
) -> tuple[TokenizedText, dict[str, Any]]:
    tokens, facts = language_model.prepare_held_out(config, data, processor, log)
    return TokenizedText(tokens, processor), facts


def model(config: Config, processor: Tokenizer) -> EncoderWithHead:
    return _model_for_vocab(config, processor.size)


def model_of_default_size(config: Config) -> EncoderWithHead:
    return _model_for_vocab(config, default_vocab_size(config))


def _model_for_vocab(config: Config, tokens: int) -> EncoderWithHead:
    sizes, vocabulary = config.model.encoder, SpecialTokens(tokens).vocab_size
    encoder = text_encoder(sizes, vocabulary, config.data.max_length)
    table = None
    if config.model.tie_embeddings:
        if not isinstance(encoder.embedding, Embedding) or encoder.embedding.width != encoder.width:
            raise ConfigError(
                "model.tie_embeddings needs an embedding as wide as the encoder: "
                "set model.encoder.embedding_width=0"
            )
        table = encoder.embedding.table
    return EncoderWithHead(
        encoder, MaskedLMHead(encoder.width, vocabulary, table, sizes.activation, sizes.norm_epsilon)
    )


def objective(
    config: Config,
    model: EncoderWithHead,
    processor: Tokenizer,
    preview_examples: TokenizedText | None = None,
) -> MaskedLMObjective:
    """A preview fills the gaps of the first words that are `preview_examples`."""
    if preview_examples is None:
        return MaskedLMObjective(model, processor)
    window = min(PREVIEW_TOKENS, config.data.context_length)
    return MaskedLMObjective(
        model, processor, MaskedBatches.for_evaluation(preview_examples, 1, window).batch(0, 0)
    )


def train_batches(config: Config, data: TokenizedText) -> MaskedBatches:
    """Windows of `data.context_length` tokens, the marks among them, with other gaps in each epoch."""
    return MaskedBatches.for_training(data, _rows(config), config.data.context_length, config.training.seed)


def eval_batches(config: Config, data: TokenizedText) -> MaskedBatches:
    """The whole of a held-out text, with the same gaps each time."""
    return MaskedBatches.for_evaluation(data, _rows(config), config.data.context_length)


def _rows(config: Config) -> int:
    return config.data.batch_tokens // config.data.context_length


def summarize(config: Config, data: PreparedData[Tokenizer, TokenizedText]) -> TaskSummary:
    kind, size = data.processor.kind, data.processor.size
    unit = language_model.token_unit(kind)
    told = f"masked language model: guess the hidden ones of {size:,} {kind} tokens"
    return TaskSummary(unit, told, SpecialTokens(size).vocab_size, unit)


def score(
    config: Config,
    model: EncoderWithHead,
    processor: Tokenizer,
    data: TokenizedText,
    predicted_ids: PredictedIds,
    progress: ProgressCallback,
) -> None:
    """The loss and the accuracy say it all."""
