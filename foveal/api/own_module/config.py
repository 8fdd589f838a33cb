"""The settings of a training of the user's own module: those of optimizer, schedule and training."""

from collections.abc import Mapping
from typing import Any

from foveal.config import Config, ConfigError, merge_tables, parse_config, parse_overrides, suggest
from foveal.config.old_names import flatten
from foveal.config.sections_by_path import nested_sections, setting_keys, to_toml, unread_fields
from foveal.config.values import StrictModel

BUDGET = "training.budget"
SECTIONS = ("optimizer", "schedule", "training")
NOT_READ = {
    "training.freeze": "set requires_grad_(False) on weights that are not to be trained",
    "training.final_test": "nothing is tested after the training",
    "training.statistics": "the layers of an own module are measured by foveal.capture",
    "optimizer.layer_decay": "the layers of an own module are not known",
}
"""Settings of these sections that own modules do not read, and why."""


def module_config(settings: Mapping[str, Any]) -> Config:
    """Return the config of settings such as `{"optimizer.lr": 1e-3}`; nested tables are the same.

    Raises: ConfigError: a setting is unknown, is not read, or does not fit.
    """
    written = written_settings(settings)
    for key in written:
        section = key.partition(".")[0]
        if key in NOT_READ:
            raise ConfigError(f"{key} is not read by foveal.Trainer: {NOT_READ[key]}")
        if section in Config.model_fields and section not in SECTIONS:
            raise ConfigError(f"{key} is not read by foveal.Trainer{suggest(section, SECTIONS)}")
    config = parse_config(_tables(written))
    unread = unread_fields(_sections(config))
    for key in written:
        if key in unread:
            raise ConfigError(f"{key} is not read, since {unread[key]}")
    return config


def module_config_to_toml(config: Config) -> str:
    """Return the settings that are read as TOML, each with its meaning as a comment."""
    sections = _sections(config)
    return to_toml(sections, {*setting_keys(sections)} - unread_fields(sections).keys() - NOT_READ.keys())


def written_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by their dotted keys, without those that are None.

    Raises: ConfigError: a key has a name of an older version, or of another program.
    """
    flat = {key: value for key, value in flatten(settings) if value is not None}
    parse_overrides(f"{key}=0" for key in flat)
    return flat


def setting_value(config: Config, key: str) -> Any:
    """Return the value of a setting by its dotted key."""
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


def _tables(written: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for key, value in written.items():
        for part in reversed(key.split(".")):
            value = {part: value}
        tables = merge_tables(tables, value)
    return tables


def _sections(config: Config) -> dict[str, StrictModel]:
    parts = (nested_sections(getattr(config, name), name) for name in SECTIONS)
    return {path: section for part in parts for path, section in part.items()}
