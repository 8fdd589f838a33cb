"""The plan of a training on many processes, of which one is counted."""

from collections.abc import Sequence
from pathlib import Path

from foveal.api.plan_options import PlanOptions
from foveal.api.results.counted_plan import CountedPlan
from foveal.config import Config, parse_overrides, preset_names
from foveal.core.errors import UserError
from foveal.models.network_registry import NETWORKS
from foveal.plugins.references import resolve_references
from foveal.store.manifest import MANIFEST_FILE
from foveal.store.run import open_run
from foveal.studies.plan.hardware import DEFAULT_HARDWARE, THIS_MACHINE, named_hardware
from foveal.studies.plan.plan import make_plan
from foveal.studies.plan.planned_model import NotCounted, sized_task
from foveal.studies.plan.published import all_published
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import network_config
from foveal.tasks.registry import open_task, task_of


def plan_ranks(name: str, overrides: Sequence[str], machines: PlanOptions) -> CountedPlan:
    """Return the plan of a training of a preset, a file, a network or a run on many processes, with what is
    published of its model.

    Raises: UserError or ConfigError: there is none of this name, a setting does not fit, the model is not
        counted, the layout does not fit the model, or there is a price and no known training.
    """
    hardware, sizes = named_hardware(machines.hardware or DEFAULT_HARDWARE), machines.sizes
    try:
        task = sized_task(_task(name, resolve_references(overrides)), sizes)
        plan = make_plan(task, machines.layout, hardware, machines.reached)
    except NotCounted as error:
        option = f"--hardware {THIS_MACHINE}" if _is_run(name) else "--data DATA"
        raise UserError(f"{error}; this machine measures it, in one process: add {option}") from None
    published = all_published().get(name) if not sizes and _has_its_model(task.config, name) else None
    is_known = plan.training is not None or (published is not None and published.training is not None)
    if machines.price_per_hour is not None and not is_known:
        raise UserError(
            f"--price-per-hour: the budget {task.config.training.budget} is no number of steps or tokens; "
            "give one, such as training.budget=10000steps"
        )
    return CountedPlan(name, plan, published, machines.price_per_hour)


def _task(name: str, overrides: Sequence[str]) -> Task:
    """Return the task of a preset, a file or a network; that of a run is bound to its processor.

    Raises: UserError or ConfigError: there is none of this name, or a setting does not fit.
    """
    if not _is_run(name):
        if len(Path(name).parts) > 1 and not name.endswith(".toml"):
            raise UserError(f"{name}: no run, and no preset is called so")
        return task_of(_config(name, overrides))
    run = open_run(name)
    return open_task(run).with_config(from_tables(run.config.model_dump(), parse_overrides(overrides)))


def _is_run(name: str) -> bool:
    return (Path(name) / MANIFEST_FILE).exists()


def _config(name: str, overrides: Sequence[str]) -> Config:
    is_network = name in NETWORKS and name not in preset_names()
    return network_config(name, overrides) if is_network else load_config(name, overrides)


def _has_its_model(config: Config, name: str) -> bool:
    """Return whether settings leave the model of a preset or of a network as it is."""
    if name not in all_published():
        return False
    own = _config(name, ())
    sizes = [
        (data.vocab_size, data.context_length, data.max_length, data.image.size, data.image.channels)
        for data in (config.data, own.data)
    ]
    return config.model == own.model and sizes[0] == sizes[1]
