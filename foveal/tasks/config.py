"""Configs with their section `task`: loaded from presets, files and `key.sub=value`, and checked."""

from collections.abc import Iterable, Mapping
from typing import Any

from foveal.config import Config, ConfigError, merge_tables, parse_config, parse_overrides, read_preset
from foveal.models.mixer_settings import with_mixer_settings
from foveal.tasks.registry import task_class, task_of


def load_config(preset: str, overrides: Iterable[str] = ()) -> Config:
    """Return the config of a preset (a name, or the path of a TOML file) with `key.sub=value` overrides.

    Raises: ConfigError: there is no such preset, or a setting is unknown or does not fit.
    """
    return from_tables(read_preset(preset), parse_overrides(overrides))


def from_tables(base: Mapping[str, Any], *over: Mapping[str, Any]) -> Config:
    """Merge nested tables, later ones win, and check the whole.

    Settings of `base` that only its task reads are dropped if a later table names another task. So are
    settings of mixers in `base` that no stack names. Such settings in later tables are refused.

    Raises: ConfigError: a setting is unknown or does not fit.
    """
    later = merge_tables(*over)
    name = later.get("task", {}).get("name", "")
    if name and name != base.get("task", {}).get("name", ""):
        known = task_class(name).Settings.model_fields
        own = {key: value for key, value in base.get("task", {}).items() if key in known}
        base = {**base, "task": own}
    config = with_mixer_settings(parse_config(merge_tables(base, later)), later)
    return checked(config)


def checked(config: Config) -> Config:
    """Return the config with all settings of its task written out.

    Raises: ConfigError: a setting is unknown to the task, or does not fit.
    """
    task = task_class(config.task.name)
    table = config.task.model_copy(update={"name": task.name})
    bound = task_of(config.model_copy(update={"task": table}))
    try:
        bound.check()
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return config.model_copy(update={"task": type(table)(**bound.settings.model_dump())})
