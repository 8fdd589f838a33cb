"""References to parts in files, such as `model.mixers=mine.py:MyCell`, in settings that a user writes.

Only settings of a command, or of a call, have them: the config of a run has the names of parts, so opening a
run executes no file that the config names.
"""

import re
from collections.abc import Sequence
from typing import Any

from foveal.config import Config, StackConfig, suggest
from foveal.config.values import Names
from foveal.core.errors import UserError
from foveal.plugins.loading import load_plugin
from foveal.plugins.registry import Registry, registry_of

REFERENCE = re.compile(r"(?<![^,+=])([^,+=]+\.py):([\w-]+)")
"""The path of a file, and the name of a class or function in it. A path begins where a value or a name in a
list does, so that the search of a long value takes no time that grows with its square."""


def resolve_references(settings: Sequence[str]) -> tuple[str, ...]:
    """Return settings `key.sub=value` with the names of parts in place of references.

    The file of a reference is loaded as a plugin. A class that is not registered gets its own name.

    Raises: UserError: there is no such file or class, or the setting names no parts.
    """
    return tuple(_resolve(setting) for setting in settings)


def _resolve(setting: str) -> str:
    key, equals, value = setting.partition("=")
    if not equals or not REFERENCE.search(value) or (registry := _registry_of(key)) is None:
        return setting
    return f"{key}={REFERENCE.sub(lambda match: _part_name(registry, match[1].strip(), match[2]), value)}"


def _part_name(registry: Registry[Any], path: str, name: str) -> str:
    """Return the name of the part that a file defines."""
    plugin = load_plugin(path)
    names = registry.names_from(plugin.has_module)
    if name in names:
        return name
    source = plugin.defined(name)
    if source is None:
        known = {*plugin.definitions, *names}
        raise UserError(f"{path}: defines no {registry.kind} {name}{suggest(name, known)}")
    registered = registry.name_of(source)
    if not registered:
        registry.add(name, source)
    return registered or name


def _registry_of(key: str) -> Registry[Any] | None:
    """Return the registry whose parts a setting names; None for other settings."""
    *path, field = key.split(".")
    section: Any = Config
    for name in path:
        section = getattr(getattr(section, "model_fields", {}).get(name), "annotation", None)
    fields = getattr(section, "model_fields", {})
    if field not in fields:  # a stack of a task has the settings of every stack
        fields = StackConfig.model_fields
    marks = [mark for mark in getattr(fields.get(field), "metadata", ()) if isinstance(mark, Names)]
    return registry_of(marks[0].kind) if marks else None
