"""The settings that hold a model back from overfitting its training rows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from foveal.config import Config, parse_overrides
from foveal.config.old_names import flatten
from foveal.config.regularizers import OFF, REGULARIZERS
from foveal.config.sections_by_path import setting_text
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables
from foveal.tasks.read_settings import read_settings

OFF_BY_TYPE: dict[type, Any] = {bool: False, int: 0, float: 0.0, str: "none"}
"""The value at which a setting of a type does nothing."""


def regularizers_off(config: Config) -> dict[str, Any]:
    """Return the regularizing settings that a config reads and that do something, with the values that turn
    them off."""
    read, values = read_settings(config), dict(flatten(config.model_dump()))
    named = {key: values[key] for key in sorted(read) if key in values and is_regularizer(key)}
    return {key: OFF_BY_TYPE[type(value)] for key, value in named.items() if value not in OFF}


def is_regularizer(key: str) -> bool:
    """Return whether a setting regularizes, by the end of its name."""
    return f".{key}".endswith(tuple(f".{name}" for name in REGULARIZERS))


def turned_off(config: Config, preset: Mapping[str, str]) -> dict[str, str]:
    """Return the preset's values of the regularizing settings that a config turns off."""
    values = dict(flatten(config.model_dump()))
    return {key: value for key, value in preset.items() if is_regularizer(key) and values[key] in OFF}


@contextmanager
def without_regularizers(task: Task) -> Iterator[Task]:
    """Return a context with the task and its model, in which nothing regularizes."""
    off = [f"{key}={setting_text(value)}" for key, value in regularizers_off(task.config).items()]
    bare = task.with_config(from_tables(task.config.model_dump(), parse_overrides(off)))
    dropouts = [module for module in task.model.modules() if isinstance(module, nn.Dropout)]
    rates = [module.p for module in dropouts]
    for module in dropouts:
        module.p = 0.0
    try:
        yield bare
    finally:
        for module, rate in zip(dropouts, rates, strict=True):
            module.p = rate
