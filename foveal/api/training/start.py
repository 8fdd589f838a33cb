"""A training before its first step: the data, the model with its first weights, and the new run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foveal.api.training.head_fit import HeadFit, fit_head
from foveal.core.errors import UserError
from foveal.core.runtime import keep_freed_memory
from foveal.data.core.prepared_data import NO_REUSE, PreparedData
from foveal.data.open import DataPaths
from foveal.store.cache import shorten_unpacked_paths, with_short_paths
from foveal.store.run import RunExistsError, RunFolder
from foveal.store.run_paths import next_run_path
from foveal.tasks.base import Task
from foveal.tasks.data_init import data_dependent_init
from foveal.tasks.session import build_model, check_initialization, new_run
from foveal.tasks.warm_start import processors_to_reuse, warm_start
from foveal.ui.activity import Activity
from foveal.ui.console import log


@dataclass(frozen=True)
class TrainingStart:
    """A training that is ready for its first step."""

    task: Task
    """The task, bound to the processor and the model."""
    prepared: PreparedData[Any, Any]
    origin: str
    """What the weights come from: a preset, or an earlier run."""
    knows_outcomes: bool
    """Whether the weights already distinguish the outcomes, so that the first loss is not that of chance."""
    fit: HeadFit | None
    """The fit of the head in closed form, if the config says so."""
    first_weights: nn.Module | None
    """The model if its first weights do not come from the seed."""

    def with_task(self, task: Task) -> "TrainingStart":
        """Return the training with another task."""
        return replace(self, task=task)


def prepare_training(
    task: Task, preset: str, base_run: RunFolder | None, paths: DataPaths, device: torch.device
) -> TrainingStart:
    """Read the data, build the model, and set its first weights.

    Raises: UserError: the data can't be read, or do not fit the model.
    """
    processor, reused = (None, NO_REUSE) if base_run is None else processors_to_reuse(base_run, task)
    with Activity(f"reading {shorten_unpacked_paths(str(paths.data))}"):
        prepared = task.bind(processor).prepare(paths, with_short_paths(log), reused)
    keep_freed_memory()
    task = task.bind(prepared.processor)
    task = task.bind(prepared.processor, build_model(task, device))
    check_initialization(task)
    _check_held_out(task, prepared, paths)
    with Activity("computing first weights"):
        initialized = data_dependent_init(task, prepared, reused=base_run is not None)
    origin, is_whole = (preset, False) if base_run is None else _fill_from_run(task, base_run)
    fit = fit_head(task, prepared)
    stored = task.store_training_data(prepared.train)
    has_own_weights = initialized or stored or fit is not None or base_run is not None
    first_weights = task.model if has_own_weights else None
    return TrainingStart(task, prepared, origin, is_whole or fit is not None, fit, first_weights)


def create_run(
    folder: Path,
    may_rename: bool,
    start: TrainingStart,
    paths: DataPaths,
    preset: str,
    device: str,
    has_number_labels: bool,
) -> RunFolder:
    """Create the run of a training in a folder.

    If another process creates the folder first, the next free name is taken, if the folder may have another.

    Raises: RunExistsError: the folder exists.
    """
    while True:
        try:
            return new_run(
                folder,
                start.task,
                start.prepared,
                paths,
                preset,
                device,
                start.first_weights,
                has_number_labels,
            )
        except RunExistsError:
            if not may_rename:
                raise
            folder = next_run_path(folder)
            log(f"another process has just created that folder: this run is {folder}")


def _check_held_out(task: Task, prepared: PreparedData[Any, Any], paths: DataPaths) -> None:
    """Check that the held-out splits are large enough for batches, before anything is written.

    Raises: UserError: a split is too small.
    """
    for split in ("valid", "test"):
        if (split_data := getattr(prepared, split)) is not None:
            try:
                task.eval_batches(split_data)
            except UserError as error:
                raise UserError(f"{getattr(paths, split) or paths.data}: {error}") from None


def _fill_from_run(task: Task, base_run: RunFolder) -> tuple[str, bool]:
    """Fill the task's model with weights of an earlier run.

    Return in words which weights these are, and whether they are all weights of the run.
    """
    if warm_start(base_run, task):
        return f"all weights of {base_run.path}", True
    return f"the encoder of {base_run.path}; the head is new", False
