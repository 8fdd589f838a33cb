"""Initialization of all hidden layers of a model by the same rule."""

import math

from torch import nn
from torch.nn.modules.conv import _ConvNd


def initialize(model: nn.Module, rule: str, last: nn.Module) -> None:
    """Reinitialize the weights of all linear layers and convolutions, except those of `last`.

    `last` is the projection to the outputs. The weights are normal with mean 0, and the rule decides the
    standard deviation:

        default    each layer keeps its own initialization
        0.01       any number: that standard deviation
        xavier     sqrt(2 / (fan_in + fan_out))        Glorot and Bengio 2010, equation 12, in its normal form
        kaiming    sqrt(2 / fan_in)                    He et al. 2015b, equation 10: for a rectifier

    The fans of a convolution count every position of its kernel. All other parameters stay as they are:
    biases (zero, except in gates), tables, norms, recurrent matrices, scans, experts, and frozen weights.
    `last` stays small, so the first loss is near ln C where features have a standard deviation near 1.
    """
    if rule == "default":
        return
    for layer in layers_of_rule(model, last):
        if layer.weight.requires_grad:
            nn.init.normal_(layer.weight, std=init_std(rule, *fan_in_and_fan_out(layer)))


def layers_of_rule(model: nn.Module, last: nn.Module) -> list[nn.Linear | _ConvNd]:
    """Return the layers that a rule is for: all linear layers and convolutions except `last`."""
    return [
        layer for layer in model.modules() if isinstance(layer, nn.Linear | _ConvNd) and layer is not last
    ]


def fan_in_and_fan_out(layer: nn.Linear | _ConvNd) -> tuple[int, int]:
    """Return fan-in (the inputs that each output reads) and fan-out (the outputs that read each input, at
    stride 1)."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    kernel_size = math.prod(layer.kernel_size)
    return layer.in_channels // layer.groups * kernel_size, layer.out_channels // layer.groups * kernel_size


def init_std(rule: str, fan_in: int, fan_out: int) -> float:
    """Return the standard deviation of the rule for a layer with these fans."""
    if rule == "xavier":
        return math.sqrt(2 / (fan_in + fan_out))
    return math.sqrt(2 / fan_in) if rule == "kaiming" else float(rule)
