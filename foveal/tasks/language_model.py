"""Language models: running text, predicted token by token."""

from pathlib import Path
from typing import Any

from foveal.config import Config
from foveal.core.log import Say
from foveal.core.progress import Watch
from foveal.data import prepare_corpus as text
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.text.token_batches import HeldOut, Streams, Windows
from foveal.data.text.token_store import TokenArray
from foveal.data.text.tokenizers import FILE, Tokenizer, load_tokenizer
from foveal.heads.decoder_lm import Generator
from foveal.models.decoder import language_model
from foveal.objectives.language_model import LanguageTask
from foveal.tasks.base import Chosen, Described, Given

USUAL = 65
"""The characters of English plays."""
HELD_OUT_ROWS = 8
"""Streams in which a held-out text is read; each starts once without history."""


def prepare(
    config: Config, given: Given, say: Say, inputs: Tokenizer | None = None, taken: Taken = NOTHING
) -> text.Text:
    return text.prepare(given.data, config.data, given.valid, given.test, say, inputs or taken.source)


def prepare_held_out(
    config: Config, data: str, inputs: Tokenizer, say: Say
) -> tuple[TokenArray, dict[str, Any]]:
    return text.prepare_held_out(data, config.data.column, inputs, say)


def open_inputs(folder: Path) -> Tokenizer:
    return load_tokenizer(folder / "text")


def input_files(inputs: Tokenizer) -> dict[str, bytes]:
    return {f"text/{FILE}": inputs.to_json().encode()}


def model(config: Config, inputs: Tokenizer) -> Generator:
    return language_model(config.model, inputs.size, config.data.context)


def outline(config: Config) -> Generator:
    return language_model(config.model, USUAL, config.data.context)


def task(
    config: Config, model: Generator, inputs: Tokenizer, shown: TokenArray | None = None
) -> LanguageTask:
    """Previews need no data: the model writes from nothing."""
    carry = config.data.order == "streams"
    return LanguageTask(model, inputs, carry, config.task.loss, config.task.positions, config.training.seed)


def training_order(config: Config, data: TokenArray) -> Streams | Windows:
    """The batches of training, micro-batches of the configured number of tokens."""
    sizes, training = config.data, config.training
    rows = sizes.batch_tokens // sizes.context
    if sizes.order == "streams":
        return Streams(data, rows, sizes.context, training.seed, training.accumulate, sizes.restart)
    return Windows(data, rows, sizes.context, training.seed)


def held_out_order(config: Config, data: TokenArray) -> HeldOut:
    """The whole of a held-out text, chunk by chunk."""
    return HeldOut(data, HELD_OUT_ROWS, config.data.context)


def describe(config: Config, data: text.Text) -> Described:
    kind, size = data.inputs.kind, data.inputs.size
    unit = unit_of(kind)
    return Described(unit, f"language model: predict the next of {size:,} {kind} tokens", size, unit)


def amount(facts: dict[str, Any]) -> str:
    tokens, documents = facts["tokens"], facts["documents"]
    return f"{tokens:,} in {documents:,} documents" if documents > 1 else f"{tokens:,}"


def answer(config: Config, model: Generator, inputs: Tokenizer, data: str, say: Say, watch: Watch) -> None:
    """It goes on from a text, and answers no source."""


def judge(
    config: Config, model: Generator, inputs: Tokenizer, data: TokenArray, chosen: Chosen, watch: Watch
) -> None:
    """The loss says it all."""


def unit_of(kind: str) -> str:
    """What a token is, in words."""
    return {"character": "characters", "byte": "bytes"}.get(kind, "tokens")
