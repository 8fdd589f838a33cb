"""What a run is trained with: its task with the model, its data and their batches."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from foveal.core.rank_device import name_for_run
from foveal.core.runtime import keep_freed_memory, resolve_device, resolve_precision
from foveal.data.core.prepared_data import PreparedData
from foveal.store.manifest import data_facts
from foveal.store.run import RunFolder, check_resumable, environment_changes
from foveal.tasks.base import Task
from foveal.tasks.open_logged import open_logged
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model, prepare_run_data
from foveal.tasks.warm_start import load_initial_weights
from foveal.training.protocols import Batches
from foveal.ui.activity import Activity
from foveal.ui.console import log


@dataclass(frozen=True)
class TrainingParts:
    """What a run is trained with."""

    run: RunFolder
    task: Task
    data: PreparedData[Any, Any]
    batches: Batches
    valid: Batches | None
    """The batches of evaluations."""

    @property
    def unit(self) -> str:
        """The unit of a step's inputs."""
        return self.task.summarize(self.data).unit

    @property
    def tested(self) -> Any:
        """The split that is evaluated after the training; None if none is."""
        return self.data.held_out if self.run.config.training.final_test else None


def with_whole_model(parts: TrainingParts) -> TrainingParts:
    """Return the parts with a model of its own, for ranks that have shared the weights of theirs."""
    task = parts.task
    device = next(task.model.parameters()).device
    return replace(parts, task=task.bind(task.processor, build_model(task, device)))


def eval_batches(task: Task, split_data: Any) -> Batches | None:
    """Return the batches that evaluate a split; None without the split."""
    return None if split_data is None else task.eval_batches(split_data)


def make_objective(parts: TrainingParts) -> Any:
    """Return the objective of a training, whose previews are of held-out data."""
    return parts.task.objective(parts.data.held_out if parts.data.valid is None else parts.data.valid)


def open_parts(path: str | Path, device: str | None, trust_plugin: bool = False) -> TrainingParts:
    """Return what a run is trained with, on `device`, or on that of its first training.

    Raises: UserError: the run's data have changed, or it can't be resumed.
    """
    run = open_logged(Path(path), log, trust_plugin)
    check_resumable(run)
    recorded = name_for_run(torch.device(data_facts(run.manifest, run.path).device))
    torch_device = resolve_device(device or recorded)
    resolve_precision(run.config.training.precision, torch_device)
    if changes := environment_changes(run):
        log(f"made with {changes}: training continues, but the result may differ in the last bits")
    with Activity(f"reading the data of {path}"):
        data = prepare_run_data(run, log)
    keep_freed_memory()
    task = task_of(run.config).bind(data.processor)
    model = build_model(task, torch_device)
    load_initial_weights(run, model)
    task = task.bind(data.processor, model)
    return TrainingParts(run, task, data, task.train_batches(data.train), eval_batches(task, data.valid))
