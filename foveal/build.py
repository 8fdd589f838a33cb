"""From a config or a run folder to processors, model, data orders and task: explicit, in one place."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.runtime import seed_everything, settled
from foveal.data.order import HeldOut, Streams, Windows
from foveal.data.prepare import Prepared, prepare
from foveal.data.tokenizers import FILE, Tokenizer, load_tokenizer
from foveal.data.tokens import TokenArray
from foveal.heads.generate import Generator
from foveal.models.language import language_model
from foveal.tasks.language import LanguageTask
from foveal.training.run import Run, create_run, open_run
from foveal.training.sealed import load_weights, open_tensors

HELD_OUT_ROWS = 8
"""Streams in which a held-out text is read; each starts once without history."""


def settle(config: Config, device: torch.device) -> Config:
    """The config with what depends on the machine decided, so that a run goes on alike on another one."""
    training = config.training
    precision = settled(training.precision, device)
    return config.model_copy(update={"training": training.model_copy(update={"precision": precision})})


def build_model(config: Config, tokenizer: Tokenizer, device: torch.device) -> Generator:
    """The model with its first weights, a function of the config and its seed."""
    seed_everything(config.training.seed, "weights")
    return language_model(config.model, tokenizer.size, config.data.context).to(device)


def build_task(config: Config, model: Generator, tokenizer: Tokenizer) -> LanguageTask:
    carry = config.data.order == "streams"
    return LanguageTask(
        model, tokenizer, carry, config.task.loss, config.task.positions, config.training.seed
    )


def training_order(config: Config, tokens: TokenArray) -> Streams | Windows:
    """The batches of training, micro-batches of the configured number of tokens."""
    data, training = config.data, config.training
    rows = data.batch_tokens // data.context
    if data.order == "streams":
        return Streams(tokens, rows, data.context, training.seed, training.accumulate, data.restart)
    return Windows(tokens, rows, data.context, training.seed)


def held_out_order(config: Config, tokens: TokenArray) -> HeldOut:
    """The whole of a held-out text, chunk by chunk."""
    return HeldOut(tokens, HELD_OUT_ROWS, config.data.context)


@dataclass(frozen=True)
class Loaded:
    """A run, ready to use: `model` is in evaluation mode with the run's best weights."""

    run: Run
    config: Config
    model: Generator
    tokenizer: Tokenizer
    task: LanguageTask


def load(path: str | Path, device: str | torch.device = "cpu") -> Loaded:
    """Open a run folder: its model, its tokenizer and its task.

    Raises UserError for what is no run, is damaged, or has no weights yet.
    """
    run = open_run(Path(path))
    tokenizer = load_tokenizer(run.inputs / "text")
    model = build_model(run.config, tokenizer, torch.device(device))
    load_run_weights(run, model)
    return Loaded(run, run.config, model.eval(), tokenizer, build_task(run.config, model, tokenizer))


def load_run_weights(run: Run, model: nn.Module) -> None:
    """Fill `model` with the run's best weights."""
    if not run.weights.is_file():
        raise UserError(f"{run.path}: no weights yet: train on with foveal resume {run.path}")
    tensors, _ = open_tensors(run.weights.read_bytes(), str(run.weights))
    load_weights(model, tensors, str(run.weights))


def new_run(
    path: Path,
    config: Config,
    prepared: Prepared,
    data: str,
    valid: str | None = None,
    test: str | None = None,
    preset: str = "",
    device: str = "cpu",
) -> Run:
    """Make the folder of a run on `prepared`, the data that `data`, `valid` and `test` name."""
    given = {"data": data, "valid": valid, "test": test}
    lasting = {
        # A path that means the same from every folder; a name of the catalogue as it is.
        part: str(Path(name).absolute()) if name and Path(name).exists() else name
        for part, name in given.items()
    }
    about = {**lasting, "preset": preset, "device": device, "facts": prepared.facts}
    inputs = {f"text/{FILE}": prepared.tokenizer.to_json().encode()}
    return create_run(path, config, inputs, about)


def prepare_again(run: Run, say: Callable[[str], None]) -> Prepared:
    """The data of a run as it was; UserError if it has changed since, or the run was imported."""
    if run.facts["data"]["data"] is None:
        raise UserError(
            f"{run.path}: imported, so it has no data of its own: name some, or train a new run with "
            f"foveal train DATA --from {run.path}"
        )
    given, before = run.facts["data"], run.facts["data"]["facts"]["parts"]
    tokenizer = load_tokenizer(run.inputs / "text")
    prepared = prepare(given["data"], run.config.data, given["valid"], given["test"], say, tokenizer)
    for part, facts in prepared.facts["parts"].items():
        if part not in before or facts["sha256"] != before[part]["sha256"]:
            raise UserError(
                f"{given['data']}: the {part} text has changed since {run.path} was made; restore it, "
                "or train a new run"
            )
    return prepared
