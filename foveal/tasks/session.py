"""From a config or a run folder to processors, model, data orders and task: explicit, in one place."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.log import Say
from foveal.core.runtime import seed_everything, settled
from foveal.data.core.prepared_data import Prepared
from foveal.layers.initialization import initialize
from foveal.store.run import Run, create_run, open_run
from foveal.store.sealed import seal_tensors, weights_of
from foveal.tasks.base import Given
from foveal.tasks.data_init import fit_first
from foveal.tasks.registry import KINDS, kind_of, open_inputs
from foveal.tasks.warm_start import START, begin_from, inputs_for, load_encoder, load_run_weights, load_start
from foveal.training.freezing import freeze
from foveal.training.protocols import Batches, Task


def settle(config: Config, device: torch.device) -> Config:
    """The config with what depends on the machine decided, so that a run goes on alike on another one."""
    training = config.training
    precision = settled(training.precision, device)
    return config.model_copy(update={"training": training.model_copy(update={"precision": precision})})


def build_model(config: Config, inputs: Any, device: torch.device) -> nn.Module:
    """The model with its first weights, a function of the config and its seed, on every device the same; some
    frozen, if it says so."""
    seed_everything(config.training.seed, "weights")
    model = kind_of(config).model(config, inputs)
    head = model.get_submodule("head") if hasattr(model, "head") else model
    initialize(model, config.model.initialization, head.get_submodule("projection"))
    freeze(model, config.training.freeze)
    return model.to(device)


def build_task(config: Config, model: nn.Module, inputs: Any, shown: Any = None) -> Task:
    """The task; previews are taken from `shown`, held-out data."""
    return kind_of(config).task(config, model, inputs, shown)


def training_order(config: Config, data: Any) -> Batches:
    """The batches of training, micro-batches of the configured number of tokens."""
    return kind_of(config).training_order(config, data)


def held_out_order(config: Config, data: Any) -> Batches:
    """The whole of a held-out part, once."""
    return kind_of(config).held_out_order(config, data)


@dataclass(frozen=True)
class Loaded:
    """A run, ready to use: `model` is in evaluation mode with the run's best weights.

    `inputs` are its processors: the tokenizer of a language model, `PairInputs` of a translator ...
    """

    run: Run
    config: Config
    model: Any
    inputs: Any
    task: Any


def load(path: str | Path, device: str | torch.device = "cpu") -> Loaded:
    """Open a run folder: its model, its inputs' processors and its task.

    Raises UserError for what is no run, is damaged, or has no weights yet.
    """
    run = open_run(Path(path))
    inputs = open_inputs(run)
    model = build_model(run.config, inputs, torch.device(device))
    load_run_weights(run, model)
    return Loaded(run, run.config, model.eval(), inputs, build_task(run.config, model, inputs))


def new_run(
    path: Path,
    config: Config,
    prepared: Prepared[Any, Any],
    given: Given,
    preset: str = "",
    device: str = "cpu",
    start: nn.Module | None = None,
) -> Run:
    """Make the folder of a run on `prepared`, the data that was `given`.

    `start` has the first weights where they are not those of the seed: they are kept, for a run that is
    stopped before its first checkpoint.
    """
    lasting = {part: _lasting(name) for part, name in given._asdict().items()}
    about = {**lasting, "preset": preset, "device": device, "facts": prepared.facts}
    lines = (json.dumps({"place": row.place, "why": row.why}) for row in prepared.aside)
    beside = {"set_aside.jsonl": "".join(f"{line}\n" for line in lines).encode()} if prepared.aside else {}
    inputs = kind_of(config).input_files(prepared.inputs)
    if start is not None:
        inputs = inputs | {START: seal_tensors(weights_of(start), {"which": "start"})}
    return create_run(path, config, inputs, about, beside=beside)


def _lasting(name: str | None) -> str | None:
    """Paths that mean the same from every folder; a name of the catalogue as it is."""
    if name is None:
        return None
    parts = [name] if Path(name).exists() else name.split(",")
    return ",".join(str(Path(part).absolute()) if Path(part).exists() else part for part in parts)


def prepare_again(run: Run, say: Callable[[str], None]) -> Prepared[Any, Any]:
    """The data of a run as it was; UserError if it has changed since, or the run was imported."""
    facts = run.facts["data"]
    if facts["data"] is None:
        raise UserError(
            f"{run.path}: imported, so it has no data of its own: name some, or train a new run with "
            f"foveal train DATA --from {run.path}"
        )
    given, before = Given(facts["data"], facts["valid"], facts["test"]), facts["facts"]["parts"]
    prepared = kind_of(run.config).prepare(run.config, given, say, open_inputs(run))
    found = prepared.facts["parts"]
    for part in before | found:
        if part not in before or part not in found or found[part]["sha256"] != before[part]["sha256"]:
            data = getattr(given, part, None) or given.data
            raise UserError(
                f"{data}: what is for {part} has changed since {run.path} was made; restore it, "
                "or train a new run"
            )
    return prepared


__all__ = [
    "KINDS",
    "Given",
    "Loaded",
    "Say",
    "begin_from",
    "build_model",
    "build_task",
    "fit_first",
    "held_out_order",
    "inputs_for",
    "kind_of",
    "load",
    "load_encoder",
    "load_run_weights",
    "load_start",
    "new_run",
    "open_inputs",
    "prepare_again",
    "settle",
    "training_order",
]
