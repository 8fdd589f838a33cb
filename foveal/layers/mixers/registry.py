"""Mixers by name. Each file of this package registers the mixers that a config may name."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from foveal.config import EncoderConfig, ModelConfig
from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.core.state import State, map_state
from foveal.plugins.constructor_settings import settings_of_constructor
from foveal.plugins.registry import Registry, file_of, is_ours, package_modules, section_name

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
    rotary_base: float = 0.0
    """Base of the angles of the stack's rotary positions; 0 if its positions are not rotary."""
    causal: bool = True
    """Each position sees only itself and earlier positions."""
    memory_width: int = 0
    """Width of the memory that the stack reads; 0 without one."""
    residual: bool = True
    """The outputs are added to the inputs."""
    norm_epsilon: float = 1e-5
    """Epsilon of the stack's norms."""


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
        return section_name(self.name)

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
Registered = TypeVar("Registered")


@runtime_checkable
class MakesMixer(Protocol):
    """A module that is no mixer, but can be made into one, such as a recurrent cell."""

    def as_mixer(self) -> nn.Module: ...


CONTRACT = ("d_in", "d_out", "bounded", "init_state", "reset_parameters")
"""What every mixer has, besides the call."""


class ModuleSpec(MixerSpec[Any]):
    """The spec of a mixer, or of a recurrent cell, that is registered as a plain class.

    The constructor takes the widths of inputs and outputs. Its other arguments are the settings.
    """

    def __init__(self, name: str, module: Callable[..., nn.Module]):
        super().__init__(name)
        self.module = module
        self.Settings = settings_of_constructor(module, ("d_in", "width"))
        if inspect.isabstract(module):
            lacking = ", ".join(sorted(getattr(module, "__abstractmethods__", ())))
            raise UserError(f"{self.place}: lacks {lacking}")

    @property
    def place(self) -> str:
        """The file and the class, for messages."""
        return f"{file_of(self.module.__module__)}: {self.module.__name__}"

    def make(self, place: MixerPlace[Any]) -> nn.Module:
        """Return a new mixer.

        Raises: UserError: the class makes no mixer of these widths.
        """
        made = self.module(place.d_in, place.width, **dict(place.settings))
        mixer: Any = made.as_mixer() if isinstance(made, MakesMixer) else made
        if lacking := [name for name in CONTRACT if not hasattr(mixer, name)]:
            raise UserError(
                f"{self.place}: no mixer, since it has no {', '.join(lacking)} (docs/own-cell.md)"
            )
        if (mixer.d_in, mixer.d_out) != (place.d_in, place.width):
            raise UserError(
                f"{self.place}: maps width {mixer.d_in} to {mixer.d_out}, and was made for {place.d_in} to "
                f"{place.width}"
            )
        if not is_ours(self.module.__module__):
            self._check_call(mixer)
        return mixer

    def _check_call(self, mixer: Any) -> None:
        """Check that a call returns outputs and a state, on two positions of zeros.

        Raises: UserError: the call returns something else.
        """
        x = torch.zeros(1, 2, mixer.d_in)
        mixer.eval()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            result = mixer(x)
        mixer.train()
        wanted = f"(outputs, state) with outputs {(1, 2, mixer.d_out)} of {x.dtype}"
        match result:
            case (Tensor() as y, state) if y.shape == (1, 2, mixer.d_out) and y.dtype == x.dtype:
                if not (wrong := _types_not_in_a_state(state)):
                    return
                given = f"a state with {', '.join(sorted(wrong))} in place of tensors"
            case (Tensor() as y, _):
                given = f"outputs {tuple(y.shape)} of {y.dtype}"
            case tuple():
                given = f"({', '.join(type(part).__name__ for part in result)})"
            case _:
                given = type(result).__name__
        raise UserError(f"{self.place}: a call must return {wanted}, not {given} (docs/own-cell.md)")


def _types_not_in_a_state(state: State) -> set[str]:
    """Return the types of a tree's leaves that can't be in a state."""
    leaves: list[object] = []
    map_state(leaves.append, state)
    return {type(leaf).__name__ for leaf in leaves if not isinstance(leaf, (Tensor, int, float))}


def mixer_spec(name: str, source: Any) -> AnyMixerSpec:
    """Return the spec of a registered class: a spec, a mixer or a recurrent cell."""
    if isinstance(source, type) and issubclass(source, MixerSpec):
        return source(name)
    return ModuleSpec(name, source)


MIXERS: Registry[AnyMixerSpec] = Registry(
    "mixer",
    lambda: package_modules(__package__),
    adapt=mixer_spec,
    reserved={*ModelConfig.model_fields, *EncoderConfig.model_fields},
)


def register_mixer(name: str) -> Callable[[Registered], Registered]:
    """Return a class decorator that lets configs name a mixer.

    The class is a recurrent cell or a mixer, whose constructor takes the widths of inputs and outputs, and
    settings with defaults; or a `MixerSpec`, which knows more about its place in a model.

    Raises: UserError: another mixer has this name or this section, or the class makes no mixer.
    """
    return MIXERS.decorator(name)


def mixer_specs() -> dict[str, AnyMixerSpec]:
    """Return the spec of every mixer by name, those of this package and those of plugins."""
    return dict(sorted(MIXERS.items()))
