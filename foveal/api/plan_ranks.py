"""The plan of a training on many processes, of which one is counted."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from foveal.config import Config, parse_overrides, preset_names
from foveal.models.network_registry import NETWORKS
from foveal.plugins.references import resolve_references
from foveal.store.manifest import MANIFEST_FILE
from foveal.store.run import open_run
from foveal.studies.plan.hardware import named_hardware
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.plan import Plan, make_plan
from foveal.studies.plan.planned_model import sized_task
from foveal.studies.plan.published import PublishedModel, all_published
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import network_config
from foveal.tasks.registry import open_task, task_of


def plan_ranks(
    name: str, overrides: Sequence[str], layout: Layout, hardware: str, sizes: Mapping[str, int]
) -> tuple[Plan, PublishedModel | None]:
    """Return the plan of a training of a preset, a file, a network or a run, and what is published of its
    model.

    Raises: UserError or ConfigError: there is none of this name, a setting does not fit, or the layout does
        not fit the model.
    """
    task = sized_task(_task(name, resolve_references(overrides)), sizes)
    plan = make_plan(task, layout, named_hardware(hardware))
    return plan, all_published().get(name) if not sizes and _has_its_model(task.config, name) else None


def _task(name: str, overrides: Sequence[str]) -> Task:
    """Return the task of a preset, a file or a network; that of a run is bound to its processor.

    Raises: UserError or ConfigError: there is none of this name, or a setting does not fit.
    """
    if not (Path(name) / MANIFEST_FILE).exists():
        return task_of(_config(name, overrides))
    run = open_run(name)
    return open_task(run).with_config(from_tables(run.config.model_dump(), parse_overrides(overrides)))


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
