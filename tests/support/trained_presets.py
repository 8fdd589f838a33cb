"""The presets whose models one machine trains. The others are for `foveal plan`."""

from functools import cache

from foveal.config import preset_names
from foveal.core.shapes_only import shapes_only
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of

MAX_PARAMETERS = 50_000_000


@cache
def trained_presets() -> tuple[str, ...]:
    """Return the presets of models of up to `MAX_PARAMETERS` parameters, which are counted."""
    return tuple(name for name in preset_names() if count_parameters(name) <= MAX_PARAMETERS)


@cache
def count_parameters(preset: str, *settings: str) -> int:
    """Return the number of parameters of a preset's model, with other settings."""
    task = task_of(load_config(preset, settings))
    with shapes_only():
        model = task.example_model()
    return sum(parameter.numel() for parameter in model.parameters())
