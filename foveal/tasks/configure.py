"""The config of a training run: the user's settings override those of a preset or an earlier run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from foveal.config import (
    MODELS_COMMAND,
    Config,
    DataConfig,
    merge_tables,
    parse_overrides,
    preset_names,
    read_preset,
    suggest,
    validate_section,
)
from foveal.config.old_names import PRESETS as OLD_PRESETS
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.open import OpenedData
from foveal.models.network_registry import NETWORKS
from foveal.plugins.references import resolve_references
from foveal.store.run import RunFolder
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables, load_config, load_tables
from foveal.tasks.defaults import Defaults, DefaultsRequest
from foveal.tasks.encoder_settings import (
    check_encoder_reuse,
    encoder_overrides,
    encoder_tables,
)
from foveal.tasks.infer import TaskChoice, choose_task, task_for_data
from foveal.tasks.published_run import published_run
from foveal.tasks.recipes import network_overrides, network_recipe, optimizer_recipe
from foveal.tasks.registry import all_tasks, default_task, network_task, task_class, task_of
from foveal.tasks.warm_start import lacks_head
from foveal.tasks.warm_start_checks import check_architecture, check_processor_settings
from foveal.training.plan import parse_budget
from foveal.ui.console import warn


class TrainingChoice(NamedTuple):
    """The config of a training, the name of its preset, the run that it starts from, and why."""

    config: Config
    preset: str
    base_run: RunFolder | None
    defaults: Defaults | None
    """The defaults that were chosen for the data; None if the user chose."""
    inferred: TaskChoice | None
    """The task that was inferred from the data; None if the user chose."""


def choose_training(
    data: OpenedData,
    overrides: tuple[str, ...],
    task_name: str | None,
    model: str | None,
    base_run: RunFolder | None,
    batch: int | None,
    pretrained: bool,
    log: Log,
) -> TrainingChoice:
    """Return the config of a training run.

    The preset is the user's choice, or that of the run to start from, or the task's default for the data. If
    the user names no task, and no model that has one, the task is inferred from DATA. The name of a network
    stands for the preset of its task with that network.

    Raises: UserError or ConfigError: a setting does not fit.
    """
    overrides = resolve_references(overrides)
    named = column_settings(overrides)
    task = None if task_name is None else task_for_data(task_class(task_name), data, named)
    settings = [*overrides]
    defaults = inferred = None
    if task is None and model is None:
        inferred = _infer_task(data, named, base_run)
        task = inferred and inferred.task
    if task is not None and model is None and base_run is None:
        defaults, base_run = _defaults_for(task, data, settings, pretrained, log)
        own = {setting.partition("=")[0] for setting in settings}
        kept = tuple(setting for setting in defaults.settings if setting.partition("=")[0] not in own)
        defaults = replace(defaults, settings=kept)
    chosen = model or (defaults.preset if defaults and base_run is None else None)
    tables, base_overrides, preset = _base_tables(task, chosen, base_run)
    base_overrides += defaults.settings if defaults else ()
    if task is not None:
        settings.append(f"task.name={task.name}")
    if base_run is None and preset == network_task().preset and model not in NETWORKS:
        base_overrides += network_recipe(tables, settings, log)
    base = merge_tables(tables, parse_overrides(base_overrides))
    base = merge_tables(base, parse_overrides(optimizer_recipe(base, settings, log)))
    config = from_tables(base, parse_overrides(settings))
    if batch is not None:
        settings.append(f"{task_of(config).batch_setting}={batch}")
        config = from_tables(base, parse_overrides(settings))
    parse_budget(config.training.budget)
    if base_run is not None:
        check_architecture(base_run, config)
        check_processor_settings(base_run, config, overrides)
    return TrainingChoice(config, chosen or preset, base_run, defaults, inferred)


def _infer_task(
    data: OpenedData, named: Mapping[str, object], base_run: RunFolder | None
) -> TaskChoice | None:
    """Return the task that fits DATA; None for that of the run to start from, which an encoder alone keeps
    only on running text.

    Raises: UserError: the data fit no task, or several tasks equally well.
    """
    if base_run is not None and not lacks_head(base_run):
        return None
    choice = choose_task(data, named)
    return None if base_run is not None and choice.task is default_task() else choice


def _defaults_for(
    task: type[Task],
    data: OpenedData,
    settings: Sequence[str],
    pretrained: bool,
    log: Log,
) -> tuple[Defaults, RunFolder | None]:
    """Return the task's defaults for the data, and the run of their published weights.

    A user who sets something of the model gets the task's own preset, with the settings that suit the data if
    that preset is the default anyway. If published weights can't be fetched, the defaults without them are
    taken, and the log says so.
    """
    tables = parse_overrides([*settings, f"task.name={task.name}"])
    preset = from_tables(load_tables(task.preset, task.name), tables)
    trains = (
        bool(tables.keys() & {"optimizer", "schedule"})
        or "budget" in tables.get("training", {})
        or "augment" in tables.get("data", {})
        or len(tables["task"]) > 1
    )
    if "model" in tables:
        defaults = task(preset).defaults(DefaultsRequest(data, trains, pretrained=False))
        is_own = defaults.preset == task.preset
        return replace(defaults, advice="") if is_own else Defaults(task.preset), None
    request = DefaultsRequest(data, trains, pretrained)
    defaults = task(preset).defaults(request)
    if trains:
        advice = _untrained_advice(task(preset), request, defaults)
        defaults = replace(defaults, advice=advice or defaults.advice)
    if not defaults.weights:
        return defaults, None
    try:
        return defaults, published_run(defaults.weights, log)
    except UserError as error:
        warn(f"{error}; training goes on without published weights (--pretrained no: without a try)")
        return task(preset).defaults(replace(request, pretrained=False)), None


def _untrained_advice(task: Task, request: DefaultsRequest, defaults: Defaults) -> str:
    """Return what the defaults would be without settings of training; empty if they would be the same."""
    others = task.defaults(replace(request, trains=False))
    if not others.reason or (others.preset, others.weights) == (defaults.preset, defaults.weights):
        return ""
    name = f"the weights {others.weights}" if others.weights else others.preset
    return (
        f"{others.reason}: that is the default ({name}) without a budget or other settings of training; with "
        f"yours, {defaults.weights or defaults.preset} is trained"
    )


def _base_tables(
    task: type[Task] | None, model: str | None, base_run: RunFolder | None
) -> tuple[dict[str, Any], list[str], str]:
    """Return the tables of the preset, the overrides that belong to the preset, and its name.

    There is a `model`, or a run to start from.
    """
    if model and model not in {*preset_names(), *NETWORKS} and Path(model).suffix != ".toml":
        raise _unknown_model(model)
    if model and model in NETWORKS and model not in preset_names():
        networks = network_task()
        if task is not None and not task.trains_networks:
            raise UserError(
                f"--model {model} labels images; for {task.name}, set model.encoder.network={model}"
            )
        return read_preset(networks.preset), network_overrides(model), networks.preset
    if base_run is not None and model is None:
        base_task = task_of(base_run.config)
        if task is not None and task.name != base_task.name:
            check_encoder_reuse(base_run, task)
            if base_task.model_reused_as in task.encoders:
                preset = task.text_preset or task.preset
                return read_preset(preset), encoder_overrides(base_run), preset
            if task.has_decoder:
                return encoder_tables(base_run, task), [], task.preset
        return base_run.config.model_dump(), [], str(base_run.path / "config.toml")
    assert model is not None
    return load_tables(model, task.name if task else ""), [], model


def network_config(name: str, settings: Sequence[str] = ()) -> Config:
    """Return the config of a published network for images of the published size, with `settings` as
    overrides.

    Raises: UserError: there is no such network, or it is an old name of a preset.
    """
    if name not in NETWORKS:
        raise _unknown_model(name)
    return load_config(network_task().preset, [*network_overrides(name), *settings])


def encoding_setting(overrides: tuple[str, ...]) -> str:
    """Return the user's setting of the encoding of tables, which is needed to open DATA. Empty if there is
    none."""
    data = parse_overrides(overrides).get("data")
    encoding = data.get("encoding", "") if isinstance(data, dict) else ""
    return validate_section(DataConfig, {"encoding": encoding}, "data").encoding


def _unknown_model(name: str) -> UserError:
    """Return the error for a name that is neither a preset nor a network."""
    if name in OLD_PRESETS:
        return UserError(f"the preset {name} is now {OLD_PRESETS[name]}")
    known = suggest(name, sorted({*preset_names(), *NETWORKS}), where=MODELS_COMMAND)
    return UserError(f"unknown preset or network '{name}'{known}")


def column_settings(overrides: tuple[str, ...]) -> dict[str, object]:
    """Return the settings that name columns, without their prefix `data.`."""
    data = parse_overrides(overrides).get("data")
    names = {name for task in all_tasks().values() for name in task.columns}
    return {key: value for key, value in data.items() if key in names} if isinstance(data, dict) else {}
