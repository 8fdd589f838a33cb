"""The settings of a config that its task, encoder, mixers and training read, and the reasons why others are
not read."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from foveal.config import Config, ConfigError, parse_config
from foveal.config.old_names import flatten
from foveal.config.sections_by_path import (
    UnreadReason,
    nested_sections,
    setting_keys,
    setting_text,
    to_toml,
    unread_fields,
)
from foveal.config.values import PartSection, StrictModel
from foveal.plugins.part_settings import named_parts, part_settings
from foveal.tasks.base import Task
from foveal.tasks.registry import data_settings, task_of

READ_BY_TRAINING = ("optimizer", "schedule", "training")
"""The sections that every training reads."""
HEAD_SETTINGS = ("model.dropout", "model.head_pooling", "model.head_fit")
"""The settings that only the default heads read."""


def read_settings(config: Config) -> set[str]:
    """Return the dotted keys of the settings that are read."""
    return {*setting_keys(config_sections(config))} - unread_settings(config).keys()


def unread_settings(config: Config) -> dict[str, UnreadReason]:
    """Return the dotted keys of the settings that are not read, each with the reason."""
    task, sections = task_of(config), config_sections(config)
    unread_in_section = unread_fields(sections)
    read = _with_part_sections({*READ_BY_TRAINING, *task.settings_read()}, sections)
    unread: dict[str, UnreadReason] = {}
    for key in setting_keys(sections):
        if not _first_prefix(key, read):
            unread[key] = _choice_behind(key, task)
        elif key not in task.always_read and (prefix := _first_prefix(key, unread_in_section)):
            unread[key] = unread_in_section[prefix]
    return unread


def without_unread(config: Config) -> Config:
    """Return the config with every unread setting at its default."""
    tables = config.model_dump()
    for key in unread_settings(config):
        _remove(tables, key.split("."))
    smaller = task_of(parse_config(tables)).config
    # A dropped setting may have been the reason to read another one.
    return config if smaller == config else without_unread(smaller)


def refuse_unread(config: Config, tables: Mapping[str, Any]) -> None:
    """Check that all settings that a user wrote are read.

    Raises: ConfigError: a setting is not read; the error gives the reason, and the nearest setting that is
    read.
    """
    unread = unread_settings(config) | _data_settings_of_other_tasks(task_of(config))
    for key, _ in flatten(tables):
        if setting := _first_prefix(key, unread):
            hint = _hint(setting, unread[setting], read_settings(config))
            raise ConfigError(f"{setting} is not read, since {unread[setting]}{hint}")


def config_to_toml(config: Config) -> str:
    """Return the settings of a config that are read as TOML, each with its meaning as a comment."""
    return to_toml(config_sections(config), read_settings(config))


def config_sections(config: Config) -> dict[str, StrictModel]:
    """Return all sections of a config by their dotted paths, including those that its task and its
    parts declare."""
    sections: dict[str, StrictModel] = {}
    task = task_of(config)
    for name in type(config).model_fields:
        section = task.settings if name == "task" else getattr(task.config, name)
        for path, inner in nested_sections(section, name).items():
            sections[path] = inner
            if isinstance(inner, PartSection):
                parts = part_settings(inner, path).items()
                sections |= {f"{path}.{part}": settings for part, settings in parts}
    return sections


def _data_settings_of_other_tasks(task: Task) -> dict[str, UnreadReason]:
    others = data_settings() - task.DataSettings.model_fields.keys()
    return {f"data.{name}": UnreadReason("task.name", task.name) for name in others}


def _with_part_sections(read: set[str], sections: Mapping[str, StrictModel]) -> set[str]:
    """Return the keys, with the sections of the parts that settings among them name."""
    return read | {
        f"{path}.{part.section}"
        for path, section in sections.items()
        if isinstance(section, PartSection)
        for part in named_parts(section, path)
        if part.has_section and _first_prefix(f"{path}.{part.field}", read)
    }


def _first_prefix(key: str, keys: Iterable[str]) -> str:
    """Return the first of `keys` that is the setting itself or a section around the setting; empty if there
    is none."""
    parts = key.split(".")
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in keys), "")


def _choice_behind(key: str, task: Task) -> UnreadReason:
    """Return the choice (encoder or task) because of which a setting is not read."""
    model = task.config.model
    if key in HEAD_SETTINGS and model.head.kind != "default":
        return UnreadReason("model.head.kind", model.head.kind, ("default",))
    if key.startswith("model.encoder."):
        return UnreadReason("model.encoder.kind", model.encoder.kind)
    return UnreadReason("task.name", task.name)


def _hint(key: str, reason: UnreadReason, read: set[str]) -> str:
    """Return a hint how to make a setting read, or the nearest setting that is read."""
    if reason.values_to_set is not None:
        values = " or ".join(map(setting_text, reason.values_to_set))
        return f"; set {reason.key}{'=' if values else ''}{values}"
    names = {other.rpartition(".")[2] for other in read}
    alike = difflib.get_close_matches(key.rpartition(".")[2], names, n=1, cutoff=0.75)
    candidates = [other for other in sorted(read) if other.rpartition(".")[2] in alike]
    nearest = difflib.get_close_matches(key, candidates, n=1, cutoff=0.0)
    return f"; did you mean '{nearest[0]}'?" if nearest else "; leave it out"


def _remove(tables: dict[str, Any], path: list[str]) -> None:
    """Remove a key from nested tables, and all tables that are then empty."""
    first, *rest = path
    if rest and first in tables:
        _remove(tables[first], rest)
    if not rest or not tables.get(first):
        tables.pop(first, None)
