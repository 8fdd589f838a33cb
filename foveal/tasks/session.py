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
from foveal.core.log import Log
from foveal.core.runtime import resolve_precision, seed_everything
from foveal.data.core.prepared_data import PreparedData
from foveal.layers.initialization import initialize
from foveal.store.run import Run, create_run, open_run
from foveal.store.sealed import seal_tensors, unique_state_dict
from foveal.tasks.base import DataPaths
from foveal.tasks.data_init import data_dependent_init
from foveal.tasks.registry import TASKS, load_processor, task_of
from foveal.tasks.warm_start import (
    INITIAL_WEIGHTS_FILE,
    load_encoder,
    load_initial_weights,
    load_run_weights,
    processors_to_reuse,
    warm_start,
)
from foveal.training.freezing import freeze
from foveal.training.protocols import Batches, Objective


def resolve_config(config: Config, device: torch.device) -> Config:
    """The config with what depends on the machine decided, so that a run goes on alike on another one."""
    training = config.training
    precision = resolve_precision(training.precision, device)
    return config.model_copy(update={"training": training.model_copy(update={"precision": precision})})


def build_model(config: Config, processor: Any, device: torch.device) -> nn.Module:
    """The model with its first weights, a function of the config and its seed, on every device the same; some
    frozen, if it says so."""
    seed_everything(config.training.seed, "weights")
    model = task_of(config).model(config, processor)
    head = model.get_submodule("head") if hasattr(model, "head") else model
    initialize(model, config.model.initialization, head.get_submodule("projection"))
    freeze(model, config.training.freeze)
    return model.to(device)


def build_objective(
    config: Config, model: nn.Module, processor: Any, preview_examples: Any = None
) -> Objective:
    """The task; previews are taken from `preview_examples`, held-out data."""
    return task_of(config).objective(config, model, processor, preview_examples)


def train_batches(config: Config, data: Any) -> Batches:
    """The batches of training, micro-batches of the configured number of tokens."""
    return task_of(config).train_batches(config, data)


def eval_batches(config: Config, data: Any) -> Batches:
    """The whole of a held-out part, once."""
    return task_of(config).eval_batches(config, data)


@dataclass(frozen=True)
class LoadedRun:
    """A run, ready to use: `model` is in evaluation mode with the run's best weights.

    `processor` are its processors: the tokenizer of a language model, `TextPairProcessor` of a translator ...
    """

    run: Run
    config: Config
    model: Any
    processor: Any
    task: Any


def load(path: str | Path, device: str | torch.device = "cpu") -> LoadedRun:
    """Open a run folder: its model, its inputs' processors and its task.

    Raises UserError for what is no run, is damaged, or has no weights yet.
    """
    run = open_run(Path(path))
    inputs = load_processor(run)
    model = build_model(run.config, inputs, torch.device(device))
    load_run_weights(run, model)
    return LoadedRun(run, run.config, model.eval(), inputs, build_objective(run.config, model, inputs))


def new_run(
    path: Path,
    config: Config,
    prepared: PreparedData[Any, Any],
    data_paths: DataPaths,
    preset: str = "",
    device: str = "cpu",
    start: nn.Module | None = None,
) -> Run:
    """Make the folder of a run on `prepared`, the data that was `data_paths`.

    `start` has the first weights where they are not those of the seed: they are kept, for a run that is
    stopped before its first checkpoint.
    """
    lasting = {part: _absolute_paths(name) for part, name in data_paths._asdict().items()}
    about = {**lasting, "preset": preset, "device": device, "facts": prepared.facts}
    lines = (json.dumps({"place": row.location, "why": row.reason}) for row in prepared.skipped)
    beside = {"set_aside.jsonl": "".join(f"{line}\n" for line in lines).encode()} if prepared.skipped else {}
    inputs = task_of(config).processor_files(prepared.processor)
    if start is not None:
        inputs = inputs | {INITIAL_WEIGHTS_FILE: seal_tensors(unique_state_dict(start), {"which": "start"})}
    return create_run(path, config, inputs, about, extra_files=beside)


def _absolute_paths(name: str | None) -> str | None:
    """Paths that mean the same from every folder; a name of the catalogue as it is."""
    if name is None:
        return None
    parts = [name] if Path(name).exists() else name.split(",")
    return ",".join(str(Path(part).absolute()) if Path(part).exists() else part for part in parts)


def prepare_run_data(run: Run, log: Callable[[str], None]) -> PreparedData[Any, Any]:
    """The data of a run as it was; UserError if it has changed since, or the run was imported."""
    facts = run.manifest["data"]
    if facts["data"] is None:
        raise UserError(
            f"{run.path}: imported, so it has no data of its own: name some, or train a new run with "
            f"foveal train DATA --from {run.path}"
        )
    given, before = DataPaths(facts["data"], facts["valid"], facts["test"]), facts["facts"]["parts"]
    prepared = task_of(run.config).prepare(run.config, given, log, load_processor(run))
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
    "TASKS",
    "DataPaths",
    "LoadedRun",
    "Log",
    "build_model",
    "build_objective",
    "data_dependent_init",
    "eval_batches",
    "load",
    "load_encoder",
    "load_initial_weights",
    "load_processor",
    "load_run_weights",
    "new_run",
    "prepare_run_data",
    "processors_to_reuse",
    "resolve_config",
    "task_of",
    "train_batches",
    "warm_start",
]
