"""The components of a model for display: stacks with their sizes, and published networks by name."""

from typing import NamedTuple

from foveal.config import EncoderConfig, StackConfig


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
    if encoder.kind == "conv3d":
        return [ModelComponent("encoder", "3D convolution", str(encoder.layers), str(encoder.width))]
    if encoder.kind == "ngrams":
        return [ModelComponent("encoder", f"{encoder.width} n-grams of up to {encoder.ngram_length} tokens")]
    network = ModelComponent("encoder", encoder.network)
    if encoder.kind == "frames":
        return [network, stack_component("then", encoder)]
    return [network if encoder.kind in ("image", "series-network") else stack_component("encoder", encoder)]


def stack_component(name: str, stack: StackConfig) -> ModelComponent:
    """Return a stack as a component with a name."""
    return ModelComponent(name, stack.mixers, str(stack.layers), str(stack.width))
