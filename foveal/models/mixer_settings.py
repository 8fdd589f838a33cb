"""The mixers that a stack's config names, with the settings that they declare."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from foveal.config import (
    ConfigError,
    EncoderStackConfig,
    StackConfig,
    suggest,
    validate_section,
)
from foveal.config.values import StrictModel
from foveal.layers.mixers.registry import AnyMixerSpec, MixerSpec, StackFacts, mixer_specs

Stack = TypeVar("Stack", bound=StackConfig)
Section = TypeVar("Section", bound=StrictModel)
Settings = TypeVar("Settings", bound=StrictModel)


class StackMixer(NamedTuple):
    """A mixer that a stack's pattern names, and its settings."""

    spec: AnyMixerSpec
    settings: StrictModel


def stack_mixers(stack: StackConfig, section: str = "model") -> dict[str, StackMixer]:
    """Return the mixers of a stack by name; `section` is the stack's place in the config.

    Raises: ConfigError: a mixer or a setting is unknown, or does not fit the stack.
    """
    specs = mixer_specs()
    for name in stack.mixer_names:
        if name not in specs:
            raise ConfigError(f"{section}.mixers: unknown mixer '{name}'{suggest(name, specs)}")
    _check_sections_known(stack, section, specs)
    causal = not isinstance(stack, EncoderStackConfig) or stack.causal
    facts = StackFacts(section, stack.width, stack.positions.kind == "rotary", causal)
    return {name: _stack_mixer(specs[name], stack, facts) for name in stack.mixer_names}


def resolve_mixer_settings(
    section: Section, user_tables: Mapping[str, Any] | None = None, path: str = "model"
) -> Section:
    """Return a section whose stacks have a complete section for each mixer that they name, and for no other
    mixer.

    `user_tables` holds the user's settings below the `path` of the section. All other settings come from a
    preset.

    Raises: ConfigError: a setting does not fit, or the user set a mixer that the stack does not name.
    """
    user_settings = user_tables or {}
    inner = {
        name: resolve_mixer_settings(stack, user_settings.get(name), f"{path}.{name}")
        for name in type(section).model_fields
        if isinstance(stack := getattr(section, name), StackConfig)
    }
    resolved = section.model_copy(update=inner)
    return _resolve_stack(resolved, path, user_settings) if isinstance(resolved, StackConfig) else resolved


def settings_of(stack: StackConfig, spec_class: type[MixerSpec[Settings]]) -> Settings:
    """Return the settings of the stack's mixer with this spec.

    Raises: ValueError: the stack has no such mixer.
    """
    for spec, settings in stack_mixers(stack).values():
        if isinstance(spec, spec_class) and isinstance(settings, spec.Settings):
            return settings
    raise ValueError(f"model.mixers={stack.mixers} names no mixer of {spec_class.__name__}")


def samples_positions(stack: StackConfig) -> bool:
    """Return whether a mixer of the model's stack samples the positions that it reads (hard attention)."""
    return any(spec.samples_positions(settings) for spec, settings in stack_mixers(stack).values())


def _resolve_stack(stack: Stack, section: str, user_settings: Mapping[str, Any]) -> Stack:
    mixers = stack_mixers(stack, section).values()
    tables = {spec.section: settings.model_dump() for spec, settings in mixers}
    for key in stack.mixer_tables.keys() & user_settings.keys() - tables.keys():
        read = ", ".join(f"{section}.{name}" for name, table in tables.items() if table) or "none"
        raise ConfigError(
            f"{section}.{key} is not read by {section}.mixers={stack.mixers}; read here: {read}"
        )
    fields = {name: getattr(stack, name) for name in type(stack).model_fields}
    return type(stack).model_validate(fields | {name: table for name, table in tables.items() if table})


def _stack_mixer(spec: AnyMixerSpec, stack: StackConfig, facts: StackFacts) -> StackMixer:
    table = stack.mixer_tables.get(spec.section, {})
    settings = validate_section(spec.Settings, table, f"{facts.section}.{spec.section}")
    try:
        spec.check(settings, facts)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return StackMixer(spec, settings)


def _check_sections_known(stack: StackConfig, section: str, specs: Mapping[str, AnyMixerSpec]) -> None:
    sections = {spec.section for spec in specs.values()}
    for key in stack.mixer_tables.keys() - sections:
        known = {*type(stack).model_fields, *sections}
        raise ConfigError(f"unknown key '{section}.{key}'{suggest(key, known, f'{section}.')}")
