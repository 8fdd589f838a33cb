"""Masked language models: running text, its hidden tokens guessed from both sides."""

from typing import Any

from foveal.config import Config, ConfigError
from foveal.core.log import Say
from foveal.core.progress import Watch
from foveal.data.core.prepared_data import NOTHING, Prepared, Taken
from foveal.data.text.masked_lm_batches import Masked, RunningText
from foveal.data.text.special_tokens import Marks
from foveal.data.text.tokenizers import Tokenizer
from foveal.heads.masked_lm import Guesser
from foveal.layers.embedding import Embedding
from foveal.models.encoder import Encoded, text_encoder
from foveal.objectives.masked_lm import MaskedTask
from foveal.tasks import language_model
from foveal.tasks.base import Chosen, Described, Given
from foveal.tasks.examples import usual_vocabulary

PREVIEWED = 48
"""Tokens of the text whose gaps a preview fills."""

open_inputs = language_model.open_inputs
input_files = language_model.input_files
amount = language_model.amount
answer = language_model.answer


def prepare(
    config: Config, given: Given, say: Say, inputs: Tokenizer | None = None, taken: Taken = NOTHING
) -> Prepared[Tokenizer, RunningText]:
    """The text as a language model has it."""
    found = language_model.prepare(config, given, say, inputs, taken)
    train, valid, test = (
        None if tokens is None else RunningText(tokens, found.inputs)
        for tokens in (found.train, found.valid, found.test)
    )
    assert train is not None
    return Prepared(found.inputs, train, valid, test, found.facts)


def prepare_held_out(
    config: Config, data: str, inputs: Tokenizer, say: Say
) -> tuple[RunningText, dict[str, Any]]:
    tokens, facts = language_model.prepare_held_out(config, data, inputs, say)
    return RunningText(tokens, inputs), facts


def model(config: Config, inputs: Tokenizer) -> Encoded:
    return _of_size(config, inputs.size)


def outline(config: Config) -> Encoded:
    return _of_size(config, usual_vocabulary(config))


def _of_size(config: Config, tokens: int) -> Encoded:
    sizes, vocabulary = config.model.encoder, Marks(tokens).vocabulary
    encoder = text_encoder(sizes, vocabulary, config.data.longest)
    table = None
    if config.model.tied:
        if not isinstance(encoder.embedding, Embedding) or encoder.embedding.width != encoder.width:
            raise ConfigError(
                "model.tied needs an embedding as wide as the encoder: set model.encoder.embedding=0"
            )
        table = encoder.embedding.table
    return Encoded(encoder, Guesser(encoder.width, vocabulary, table, sizes.activation, sizes.norm_epsilon))


def task(config: Config, model: Encoded, inputs: Tokenizer, shown: RunningText | None = None) -> MaskedTask:
    """A preview fills the gaps of the first words that are `shown`."""
    if shown is None:
        return MaskedTask(model, inputs)
    window = min(PREVIEWED, config.data.context)
    return MaskedTask(model, inputs, Masked.held_out(shown, 1, window).batch(0, 0))


def training_order(config: Config, data: RunningText) -> Masked:
    """Windows of `data.context` tokens, the marks among them, with other gaps in each epoch."""
    return Masked.windows(data, _rows(config), config.data.context, config.training.seed)


def held_out_order(config: Config, data: RunningText) -> Masked:
    """The whole of a held-out text, with the same gaps each time."""
    return Masked.held_out(data, _rows(config), config.data.context)


def _rows(config: Config) -> int:
    return config.data.batch_tokens // config.data.context


def describe(config: Config, data: Prepared[Tokenizer, RunningText]) -> Described:
    kind, size = data.inputs.kind, data.inputs.size
    unit = language_model.unit_of(kind)
    told = f"masked language model: guess the hidden ones of {size:,} {kind} tokens"
    return Described(unit, told, Marks(size).vocabulary, unit)


def judge(
    config: Config, model: Encoded, inputs: Tokenizer, data: RunningText, chosen: Chosen, watch: Watch
) -> None:
    """The loss and the accuracy say it all."""
