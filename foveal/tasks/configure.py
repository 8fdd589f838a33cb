"""The config of a training run: the user's settings override those of a preset or an earlier run."""

from collections.abc import Sequence
from typing import Any

from foveal.config import (
    Config,
    StackConfig,
    merge_tables,
    parse_overrides,
    preset_names,
    read_preset,
    suggest,
)
from foveal.config.old_names import PRESETS as OLD_PRESETS
from foveal.core.errors import UserError
from foveal.data.open import OpenedData
from foveal.models.image_networks import NETWORKS, published_input
from foveal.models.stack_settings import PIXEL_ENCODERS
from foveal.store.run import Run
from foveal.tasks.base import Task
from foveal.tasks.config import checked, from_tables, load_config, load_tables
from foveal.tasks.encoder_settings import (
    STACK_WEIGHT_SETTINGS,
    check_encoder_reuse,
    encoder_overrides,
    encoder_tables,
)
from foveal.tasks.infer import infer_task, task_for_data
from foveal.tasks.registry import all_tasks, network_task, task_class, task_of
from foveal.tasks.warm_start import reuses_whole_model
from foveal.training.plan import parse_budget

PROCESSOR_SETTINGS = (
    "tokenizer",
    "vocab_size",
    "target_tokenizer",
    "shared_vocabulary",
    "sample_rate",
    "mel_bins",
)
"""Settings of processors that belong to a run's weights."""


def load_training_config(
    data: OpenedData,
    overrides: tuple[str, ...],
    task_name: str | None,
    model: str | None,
    base_run: Run | None,
    budget: str | None,
) -> tuple[Config, str]:
    """Return the config of a training run, and the name of its preset.

    The preset is the user's choice, or that of the run to start from, or the task's default. If the user
    names no task, the task is inferred from DATA. The name of a network stands for the preset of its task
    with that network.

    Raises: UserError or ConfigError: a setting does not fit.
    """
    named = _column_settings(overrides)
    task = None if task_name is None else task_for_data(task_class(task_name), data, named)
    settings = [f"training.budget={budget}"] if budget else []
    settings += [f"task.name={task.name}"] if task else []
    tables, base_overrides, preset = _base_tables(data, task, model, base_run, named)
    base = merge_tables(tables, parse_overrides(base_overrides))
    config = from_tables(base, parse_overrides([*overrides, *settings]))
    parse_budget(config.training.budget)
    if base_run is not None:
        _check_architecture(base_run, config)
        _check_processor_settings(base_run, config, overrides)
    return config, model or preset


def _base_tables(
    data: OpenedData,
    task: type[Task] | None,
    model: str | None,
    base_run: Run | None,
    named: dict[str, object],
) -> tuple[dict[str, Any], list[str], str]:
    """Return the tables of the preset, the overrides that belong to the preset, and its name."""
    if model in NETWORKS and model not in preset_names():
        networks = network_task()
        if task not in (None, networks):
            raise UserError(
                f"--model {model} labels images; for {task.name if task else ''}, set "
                f"model.encoder.network={model}"
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
    preset = model or (task or infer_task(data, named)).preset
    return load_tables(preset, task.name if task else ""), [], preset


def network_overrides(name: str) -> list[str]:
    """Return the settings of a published network, for images of the published size."""
    channels, size, _ = published_input(name)
    image = f"data.image.channels={channels}", f"data.image.size={size}"
    return [f"model.encoder.network={name}", *image]


def network_config(name: str, settings: Sequence[str] = ()) -> Config:
    """Return the config of a published network for images of the published size, with `settings` as
    overrides.

    Raises: UserError: there is no such network, or it is an old name of a preset.
    """
    if name in OLD_PRESETS:
        raise UserError(f"the preset {name} is now {OLD_PRESETS[name]}")
    if name not in NETWORKS:
        known = suggest(name, sorted({*preset_names(), *NETWORKS}))
        raise UserError(f"unknown preset or network '{name}'{known}")
    return load_config(network_task().preset, [*network_overrides(name), *settings])


def _column_settings(overrides: tuple[str, ...]) -> dict[str, object]:
    """Return the settings that name columns, without their prefix `data.`."""
    data = parse_overrides(overrides).get("data")
    names = {name for task in all_tasks().values() for name in task.columns}
    return {key: value for key, value in data.items() if key in names} if isinstance(data, dict) else {}


def _check_architecture(base_run: Run, config: Config) -> None:
    """Check that the weights of `base_run` fit: all weights for its own task, the encoder's for other tasks.

    Raises: UserError: the weights do not fit.
    """
    base_config = checked(base_run.config)
    own, old = config.model, base_config.model
    same_task = config.task.name == base_run.config.task.name
    if not same_task:
        check_encoder_reuse(base_run, type(task_of(config)))
    if same_task or not reuses_whole_model(task_of(base_run.config), config):
        fits = _architecture_settings(own.encoder) == _architecture_settings(old.encoder) and (
            not same_task or _architecture_settings(own) == _architecture_settings(old)
        )
    else:  # the run's whole model is the encoder
        fits = (
            _architecture_settings(own.encoder).items()
            >= {name: _architecture_settings(old)[name] for name in STACK_WEIGHT_SETTINGS}.items()
        )
    if not fits and same_task:
        raise UserError(f"{base_run.path}: its model does not fit: leave out --model and model.* settings")
    if not fits:
        raise UserError(
            f"{base_run.path}: its encoder does not fit: leave out --model and model.encoder.* settings, and "
            f"name --task {config.task.name}"
        )
    if _encoder_image_shape(config) != _encoder_image_shape(base_config):
        raise UserError(
            f"{base_run.path}: its encoder reads other images: leave out --model and data.image.* settings"
        )


def _check_processor_settings(base_run: Run, config: Config, overrides: tuple[str, ...]) -> None:
    """Check that no override changes a setting of the processors that belong to the weights of `base_run`.

    Raises: UserError: an override changes such a setting.
    """
    task, base_task = task_of(config), task_of(base_run.config)
    of_encoder = {*task.fixed_settings()} & {*base_task.fixed_settings()}
    changed = {
        name
        for name in parse_overrides(overrides).get("data", {})
        if name in PROCESSOR_SETTINGS and getattr(config.data, name) != getattr(base_run.config.data, name)
    }
    for name in sorted(changed):
        if task.name == base_task.name or f"data.{name}" in of_encoder:
            raise UserError(
                f"{base_run.path}: data.{name} belongs to the weights and can't change: leave it out"
            )


def _architecture_settings(stack: StackConfig) -> dict[str, Any]:
    """Return the settings on which the shapes of a stack's weights depend, without those of its encoder."""
    return stack.model_dump(exclude={"dropout", "encoder"})


def _encoder_image_shape(config: Config) -> tuple[int, int]:
    """Return the channels and the size of images on which the shapes of an encoder's weights depend.

    0 means that they do not depend on the size. Convolutions and patches work for any size. Encoders of
    frames use all positions of a frame's feature map.
    """
    image, kind = config.data.image, config.model.encoder.kind
    return image.channels if kind in PIXEL_ENCODERS else 0, image.size if kind in ("frames", "conv3d") else 0
