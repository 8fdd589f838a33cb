"""The plan of a training on this machine, from Python and on the command line."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foveal.api.errors import plain_errors
from foveal.api.results.machine_plan import MachinePlan
from foveal.api.training.batch_sample import BatchSample
from foveal.api.training.choose import choose
from foveal.api.training.cost import TrainingCost, measure_cost
from foveal.api.training.fitting import counted_tensors
from foveal.api.training.options import TrainingOptions, setting
from foveal.api.training.parts import open_parts
from foveal.api.training.prepare import prepare
from foveal.api.training.stored import store_training
from foveal.config.old_names import flatten
from foveal.core.errors import UserError
from foveal.core.runtime import free_memory_on, reset_peak_memory
from foveal.data.core.prepared_data import PreparedData
from foveal.store.manifest import MANIFEST_FILE
from foveal.tasks.base import Task
from foveal.training.protocols import Batches
from foveal.ui.activity import Activity
from foveal.ui.console import silence


@plain_errors
def plan(
    model: str | Path,
    data: Any = None,
    *,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: Any = None,
    test: Any = None,
    device: str = "auto",
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> MachinePlan:
    """Return the memory and the time of a training on this machine. `foveal plan MODEL --data DATA` does the
    same.

    Raises: UserError: the data can't be read, a setting does not fit, or the model does not fit into the free
        memory.

    Parameters
    ----------
    model
        A preset, a network for images, the path of a TOML file, or a run.
    data, valid, test
        Data as for `foveal.train`: paths, names, or values in memory. A run has its own.
    task
        What to learn; if not given, the model's task, or the one that fits the data.
    text, label, target
        The columns of texts (of sources if `target` is given), of labels, and of target texts.
    device
        cpu, cuda, mps, or auto.
    quiet
        Print nothing.
    settings
        Other settings by their keys, such as `{"model.width": 256}`.
    """
    if data is None:
        others = {"task": task, "text": text, "label": label, "target": target, "valid": valid, "test": test}
        if given := [name for name, value in others.items() if value is not None]:
            raise UserError(f"{given[0]}=: {model} is planned on its own data: leave {given[0]} out")
        overrides = tuple(setting(key, value) for key, value in flatten(settings or {}))
        with silence(quiet):
            return plan_of_run(Path(model), overrides, device)
    options = TrainingOptions(
        task=task, model=str(model), text=text, label=label, target=target, device=device
    )
    stored = store_training(data, valid, test, options, settings)
    with silence(quiet):
        return plan_on_data(stored.data, stored.overrides, stored.options)


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


def plan_of_run(path: Path, overrides: tuple[str, ...], device: str | None) -> MachinePlan:
    """Return the plan of the training of a run on its own data, whose first step is measured.

    Raises: UserError: there is no run, its data have changed, or a step does not fit into the free memory.
    """
    if not (path / MANIFEST_FILE).exists():
        raise UserError(f"{path}: not a run, so the data are needed: foveal plan {path} --data DATA")
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
