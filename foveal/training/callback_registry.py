"""Callbacks by name: `training.callbacks`."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from foveal.config import TrainingConfig
from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.plugins.constructor_settings import settings_of_constructor
from foveal.plugins.part_settings import named_parts, part_settings
from foveal.plugins.registry import Registry, file_of
from foveal.training.callbacks import has_event

Registered = TypeVar("Registered")


@dataclass(frozen=True)
class CallbackSpec:
    """A callback that a config may name. The arguments of its constructor are its settings."""

    name: str
    make: Callable[..., Any]
    Settings: type[StrictModel]


def _callback_spec(name: str, source: Any) -> CallbackSpec:
    """Return the spec of a class of callbacks.

    Raises: UserError: the class is none, or its arguments are no settings.
    """
    if not (inspect.isclass(source) and has_event(source)):
        place = f"{file_of(source.__module__)}: {source.__name__}"
        raise UserError(
            f"{place} is no callback; a callback is a class with methods such as on_step (those of "
            "foveal.Callback)"
        )
    return CallbackSpec(name, source, settings_of_constructor(source, ()))


CALLBACKS: Registry[CallbackSpec] = Registry(
    "callback", adapt=_callback_spec, reserved=TrainingConfig.model_fields
)


def register_callback(name: str) -> Callable[[Registered], Registered]:
    """Return a class decorator that registers a class with methods of `foveal.Callback`.

    `training.callbacks=NAME` then makes a callback.

    The arguments of its constructor are settings, which need types and defaults.

    Raises: UserError: another callback has this name, or the class is no callback.
    """
    return CALLBACKS.decorator(name)


def make_callbacks(config: TrainingConfig) -> list[Any]:
    """Return new callbacks of the names in a config."""
    settings: Mapping[str, StrictModel] = part_settings(config, "training")
    parts = named_parts(config, "training")
    return [part.part.make(**dict(settings[part.section])) for part in parts]
