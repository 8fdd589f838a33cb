"""The plan of a training on this machine, of which a step is measured."""

from collections import Counter
from pathlib import Path
from typing import Any

from foveal.api.results.machine_plan import MachinePlan
from foveal.api.training.batch_sample import BatchSample
from foveal.api.training.choose import choose
from foveal.api.training.cost import TrainingCost, measure_cost
from foveal.api.training.fitting import counted_tensors
from foveal.api.training.options import TrainingOptions
from foveal.api.training.parts import open_parts
from foveal.api.training.prepare import prepare
from foveal.core.errors import UserError
from foveal.core.runtime import free_memory_on, reset_peak_memory
from foveal.data.core.prepared_data import PreparedData
from foveal.store.manifest import MANIFEST_FILE
from foveal.tasks.base import Task
from foveal.training.protocols import Batches
from foveal.ui.activity import Activity


def plan_on_data(data: str, overrides: tuple[str, ...], options: TrainingOptions) -> MachinePlan:
    """Return the plan of a training on DATA, whose first step is measured.

    Raises: UserError or ConfigError: DATA can't be read, a setting does not fit, or a step does not fit into
        the free memory.
    """
    if (Path(str(options.model)) / MANIFEST_FILE).exists():
        raise UserError(f"{options.model}: a run is planned on its own data: leave the data out")
    prepared = prepare(choose(data, overrides, options))
    start = prepared.start
    return _plan(str(options.model), start.task, start.prepared, prepared.batches, prepared.cost)


def plan_of_run(path: Path, overrides: tuple[str, ...], device: str) -> MachinePlan:
    """Return the plan of the training of a run on its own data, whose first step is measured.

    Raises: UserError: there is no run, its data have changed, or a step does not fit into the free memory.
    """
    if not (path / MANIFEST_FILE).exists():
        raise UserError(f"{path}: not a run, so the data are needed: add --data DATA")
    if overrides:
        raise UserError(f"{overrides[0]}: a run keeps its settings; give a preset or a TOML file with --data")
    reset_peak_memory()
    parts = open_parts(path, None if device == "auto" else device)
    with Activity("measuring a step"):
        cost = measure_cost(parts.task, parts.data, parts.batches, parts.valid)
    return _plan(str(path), parts.task, parts.data, parts.batches, cost)


def _plan(
    name: str, task: Task, data: PreparedData[Any, Any], batches: Batches, cost: TrainingCost
) -> MachinePlan:
    parameters = sum(weight.numel() for weight in task.model.parameters())
    free = free_memory_on(next(task.model.parameters()).device)
    tensors = None if cost.steps is None else counted_tensors(task, BatchSample.of(batches).largest)
    return MachinePlan(name, parameters, task.summarize(data).unit, cost, free, tensors or Counter())
