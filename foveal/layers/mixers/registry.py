"""Mixers by name. Each file of this package registers the mixers that a config may name."""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from torch import nn

from foveal.config.values import StrictModel


class NoSettings(StrictModel):
    """The section of a mixer without settings."""


S = TypeVar("S", bound=StrictModel)


@dataclass(frozen=True)
class MixerPlace(Generic[S]):
    """A mixer's settings, and the mixer's place in a model."""

    settings: S
    d_in: int
    """Width of the input vectors."""
    width: int
    """Width of the output vectors."""
    layer: int = 0
    """Number of the layer, from 0."""
    layers: int = 1
    """Layers of the stack."""
    rotary: bool = False
    """The stack's positions are rotary."""
    causal: bool = True
    """Each position sees only itself and earlier positions."""
    memory_width: int = 0
    """Width of the memory that the stack reads; 0 without one."""
    residual: bool = True
    """The outputs are added to the inputs."""


@dataclass(frozen=True)
class StackFacts:
    """Sizes of the stack around a mixer, which the mixer's settings must fit."""

    section: str
    """The stack's section in the config: `model`, `model.encoder`."""
    width: int
    rotary: bool
    causal: bool


class MixerSpec(ABC, Generic[S]):
    """A mixer that a config may name: its settings, its facts for the stack, and a function that makes it."""

    name: str
    """The name in a pattern of mixers, set by `register_mixer`."""
    Settings: type[S]
    """The mixer's section of a stack's config."""
    same_width: ClassVar[bool] = False
    """Outputs always have the width of the inputs."""
    reads_memory: ClassVar[bool] = False
    """The mixer reads a memory, so it can stand in a decoder only."""
    sees_whole_row: ClassVar[bool] = False
    """Without `MixerPlace.causal` one mixer sees both directions; other mixers need a second one for that."""

    def __init__(self, name: str):
        self.name = name

    @property
    def section(self) -> str:
        """Name of the mixer's section in the config."""
        return self.name.replace("-", "_")

    @abstractmethod
    def make(self, place: MixerPlace[S]) -> nn.Module:
        """Return a new mixer for this place."""

    def check(self, settings: S, stack: StackFacts) -> None:
        """Check that the settings fit the stack.

        Raises: ValueError: they do not fit; the message says what to change.
        """

    def samples_positions(self, settings: S) -> bool:
        """Return whether the mixer samples the positions it reads, which is learned by REINFORCE."""
        return False


AnyMixerSpec = MixerSpec[Any]
SpecClass = TypeVar("SpecClass", bound=type[AnyMixerSpec])

_specs: dict[str, AnyMixerSpec] = {}


def register_mixer(name: str) -> Callable[[SpecClass], SpecClass]:
    """Return a class decorator that lets configs name the mixer of a spec class.

    Raises: ValueError: another mixer has this name or this section.
    """

    def register(spec_class: SpecClass) -> SpecClass:
        spec = spec_class(name)
        if any(other.section == spec.section for other in _specs.values()):
            raise ValueError(f"a mixer named '{name}' is registered already")
        _specs[name] = spec
        return spec_class

    return register


def mixer_specs() -> dict[str, AnyMixerSpec]:
    """Return the spec of every mixer by name, those of this package and those registered elsewhere."""
    _import_package()
    return dict(sorted(_specs.items()))


@cache
def _import_package() -> None:
    """Import every file of this package, so that each registers its mixers."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__, f"{__package__}."):
        importlib.import_module(module.name)
