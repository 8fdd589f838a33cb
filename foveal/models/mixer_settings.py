"""The mixers that a stack's config names, with the settings that they declare."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from foveal.config import ConfigError, EncoderStackConfig, StackConfig
from foveal.config.sections_by_path import nested_sections
from foveal.config.values import StrictModel
from foveal.layers.mixers.registry import AnyMixerSpec, MixerSpec, StackFacts
from foveal.plugins.part_settings import named_parts, part_settings, resolve_part_settings

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
    settings = part_settings(stack, section)
    causal = not isinstance(stack, EncoderStackConfig) or stack.causal
    facts = StackFacts(section, stack.width, stack.positions.kind == "rotary", causal)
    mixers: dict[str, StackMixer] = {}
    for part in named_parts(stack, section):
        if isinstance(part.part, MixerSpec):
            mixers[part.name] = StackMixer(part.part, settings[part.section])
            try:
                part.part.check(settings[part.section], facts)
            except ValueError as error:
                raise ConfigError(str(error)) from None
    return mixers


def resolve_mixer_settings(
    section: Section, user_tables: Mapping[str, Any] | None = None, path: str = "model"
) -> Section:
    """Return `resolve_part_settings`, whose mixers fit their stacks.

    Raises: ConfigError: a setting does not fit, or the user set a part that is not named.
    """
    resolved = resolve_part_settings(section, user_tables, path)
    for place, inner in nested_sections(resolved, path).items():
        if isinstance(inner, StackConfig):
            stack_mixers(inner, place)
    return resolved


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
