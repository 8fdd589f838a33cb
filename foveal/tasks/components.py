"""The components of a model for display: stacks with their sizes, and published networks by name."""

from typing import NamedTuple

from foveal.config import EncoderConfig, StackConfig
from foveal.models.encoder_registry import encoder_spec


class ModelComponent(NamedTuple):
    """A component of a model: a stack, or a published network, which has a name instead of the settings of a
    stack."""

    name: str
    mixers: str
    layers: str = ""
    width: str = ""

    def __str__(self) -> str:
        stack = f"{self.layers} x {self.mixers}, width {self.width}" if self.layers else self.mixers
        return f"{self.name} {stack}".strip()


def encoder_components(encoder: EncoderConfig) -> list[ModelComponent]:
    """Return the components of an encoder, from input to output."""
    parts = encoder_spec(encoder).components(encoder)
    names = ["encoder", *["then"] * (len(parts) - 1)]
    return [ModelComponent(name, *part) for name, part in zip(names, parts, strict=True)]


def stack_component(name: str, stack: StackConfig) -> ModelComponent:
    """Return a stack as a component with a name."""
    return ModelComponent(name, stack.mixers, str(stack.layers), str(stack.width))
