"""Configs with their section `task`: loaded from presets, files and `key.sub=value`, and checked.

A config holds only the settings that are read. All other settings have their defaults, and are not written.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from foveal.config import (
    SETTINGS_COMMAND,
    Config,
    ConfigError,
    DataConfig,
    TaskTable,
    merge_tables,
    parse_config,
    parse_overrides,
    preset_names,
    read_preset,
    suggest,
    validate_section,
)
from foveal.models.mixer_settings import resolve_mixer_settings
from foveal.tasks.base import Task
from foveal.tasks.read_settings import refuse_unread, without_unread
from foveal.tasks.registry import data_settings, task_class, task_of


def load_config(preset: str, overrides: Iterable[str] = ()) -> Config:
    """Return the config of a preset (a name, or the path of a TOML file) with `key.sub=value` overrides.

    Raises: ConfigError: there is no such preset, or a setting is unknown, not read or does not fit.
    """
    return from_tables(load_tables(preset), parse_overrides(overrides))


def load_tables(preset: str, task_name: str = "") -> dict[str, Any]:
    """Return the tables of a built-in preset, or of a user's own TOML file.

    `task_name` is the task of a file that names none.

    Raises: ConfigError: there is no such preset or file, or a setting in the file is not allowed.
    """
    tables = read_preset(preset)
    if preset not in preset_names():
        named = {"task": {"name": task_name}} if task_name else {}
        try:
            from_tables(named, tables)
        except ConfigError as error:
            raise ConfigError(f"{preset}: {error}") from None
    return tables


def from_tables(base: Mapping[str, Any], *over: Mapping[str, Any]) -> Config:
    """Merge nested tables, where later tables win, and check the result.

    Settings of `base` that are not read are dropped. Such settings in later tables are errors.

    Raises: ConfigError: a setting is unknown, not read, or does not fit.
    """
    later = merge_tables(*over)
    name = later.get("task", {}).get("name", "")
    if name and name != base.get("task", {}).get("name", ""):
        known = task_class(name).Settings.model_fields
        own = {key: value for key, value in base.get("task", {}).items() if key in known}
        base = {**base, "task": own}
    return checked(parse_config(merge_tables(base, later)), later)


def checked(config: Config, user_tables: Mapping[str, Any] | None = None) -> Config:
    """Return the config with all settings of its task and mixers, without those that are not read.

    `user_tables` holds the settings that the user wrote. All other settings come from a preset or a run.

    Raises: ConfigError: a setting is unknown to the task or does not fit, or a setting of the user is not
    read.
    """
    written = user_tables or {}
    config = _completed(config, written)
    try:
        task_of(config).check_encoder()
        config = without_unread(config)
        refuse_unread(config, written)
        task_of(config).check()
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return config


def _completed(config: Config, written: Mapping[str, Any]) -> Config:
    """Return the config with all settings of its task, and with a section for each mixer that the config
    names."""
    task_type = task_class(config.task.name)
    named = config.task.model_copy(update={"name": task_type.name})
    task = task_type(config.model_copy(update={"task": named, "data": _data_of_task(config, task_type)}))
    settings = resolve_mixer_settings(task.settings, written.get("task"), "task")
    model = resolve_mixer_settings(config.model, written.get("model"))
    training = resolve_mixer_settings(config.training, written.get("training"), "training")
    sections = {"task": TaskTable(**settings.model_dump()), "model": model, "training": training}
    return task.config.model_copy(update=sections)


def _data_of_task(config: Config, task: type[Task]) -> DataConfig:
    """Return the section `data` without the settings of other tasks.

    Raises: ConfigError: no task has a setting.
    """
    table, known = config.data.model_dump(), data_settings()
    for key in sorted(table.keys() - known):
        raise ConfigError(f"unknown key 'data.{key}'{suggest(key, known, 'data.', SETTINGS_COMMAND)}")
    own = {key: value for key, value in table.items() if key in task.DataSettings.model_fields}
    return validate_section(task.DataSettings, own, "data")
