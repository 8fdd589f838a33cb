"""The settings that the parts named in a config declare: each part has a section named like the part."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from foveal.config import ConfigError, suggest, validate_section
from foveal.config.values import Names, PartSection, StrictModel
from foveal.plugins.constructor_settings import NoSettings
from foveal.plugins.registry import Registry, registry_of, section_name

Section = TypeVar("Section", bound=StrictModel)


class NamedPart(NamedTuple):
    """A part that a setting names."""

    registry: Registry[Any]
    field: str
    name: str
    part: Any
    has_section: bool

    @property
    def section(self) -> str:
        return section_name(self.name)

    @property
    def settings_class(self) -> type[StrictModel]:
        settings: type[StrictModel] = getattr(self.part, "Settings", NoSettings)
        return settings


def named_parts(section: StrictModel, path: str) -> list[NamedPart]:
    """Return the parts that the fields of a section name; `path` is the place of the section in the config.

    Raises: ConfigError: there is no part of a name.
    """
    parts: list[NamedPart] = []
    for field, mark in _marks(type(section)):
        registry = registry_of(mark.kind)
        for name in mark.names(getattr(section, field)):
            if not mark.checked and name not in registry:
                continue
            part = registry.find(name, f"{path}.{field}")
            parts.append(NamedPart(registry, field, name, part, mark.sections))
    return parts


def part_settings(section: PartSection, path: str) -> dict[str, StrictModel]:
    """Return the settings of the named parts, by the names of their sections.

    Raises: ConfigError: a part or a setting is unknown, or a value is not allowed.
    """
    parts = [part for part in named_parts(section, path) if part.has_section]
    registries = [registry_of(mark.kind) for _, mark in _marks(type(section)) if mark.sections]
    for key in section.part_tables:
        if not any(registry.has_section(key) for registry in registries):
            known = {*type(section).model_fields, *(section_name(n) for each in registries for n in each)}
            raise ConfigError(f"unknown key '{path}.{key}'{suggest(key, known, f'{path}.')}")
    _check_sections_differ(parts, path)
    return {
        part.section: validate_section(
            part.settings_class, section.part_tables.get(part.section, {}), f"{path}.{part.section}"
        )
        for part in parts
    }


def resolve_part_settings(
    section: Section, user_tables: Mapping[str, Any] | None = None, path: str = "model"
) -> Section:
    """Return a section with a complete section for each part that it names, and for no other part. The same
    holds for the sections inside it.

    `user_tables` holds the user's settings below the `path` of the section. All other settings come from a
    preset.

    Raises: ConfigError: a setting does not fit, or the user set a part that is not named.
    """
    user_settings = user_tables if isinstance(user_tables, Mapping) else {}
    inner = {
        name: resolve_part_settings(value, user_settings.get(name), f"{path}.{name}")
        for name in type(section).model_fields
        if isinstance(value := getattr(section, name), StrictModel)
    }
    resolved = section.model_copy(update=inner)
    if not isinstance(resolved, PartSection):
        return resolved
    settings = part_settings(resolved, path)
    tables = {name: each.model_dump() for name, each in settings.items()}
    _refuse_tables_of_others(resolved, path, user_settings, tables)
    fields = {name: getattr(resolved, name) for name in type(resolved).model_fields}
    return type(resolved).model_validate(fields | {name: table for name, table in tables.items() if table})


def _refuse_tables_of_others(
    section: PartSection, path: str, user_settings: Mapping[str, Any], tables: Mapping[str, dict[str, Any]]
) -> None:
    """Check that the user set no part that is not named.

    Raises: ConfigError: the user did.
    """
    for key in section.part_tables.keys() & user_settings.keys() - tables.keys():
        fields = [(field, registry_of(mark.kind)) for field, mark in _marks(type(section)) if mark.sections]
        field = next(field for field, registry in fields if registry.has_section(key))
        read = ", ".join(f"{path}.{name}" for name, table in tables.items() if table) or "none"
        raise ConfigError(
            f"{path}.{key} is not read by {path}.{field}={getattr(section, field)}; read here: {read}"
        )


def _check_sections_differ(parts: list[NamedPart], path: str) -> None:
    """Check that no two parts with settings have the same section.

    Raises: ConfigError: two parts do.
    """
    owners: dict[str, NamedPart] = {}
    for part in parts:
        other = owners.get(part.section, part)
        if part.settings_class.model_fields:
            owners[part.section] = part
        if other.registry is not part.registry and part.settings_class.model_fields:
            raise ConfigError(
                f"{path}.{part.section} would be the settings of the {other.registry.kind} {other.name} and "
                f"of the {part.registry.kind} {part.name}: rename one of them"
            )


def _marks(section: type[StrictModel]) -> Iterator[tuple[str, Names]]:
    """Yield the fields of a section that name parts."""
    for name, field in section.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, Names):
                yield name, mark
