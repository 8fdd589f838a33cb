"""One way for the first weights of all hidden layers, whatever they are."""

import math

from torch import nn
from torch.nn.modules.conv import _ConvNd


def initialize(model: nn.Module, rule: str, last: nn.Module) -> None:
    """Draw the weights of all linear maps and convolutions anew, but those of `last`, the projection to the
    outcomes: normal, of a deviation that may depend on how many numbers come in and go out.

        own        as each layer begins by itself: nothing is done
        0.01       any number: that deviation
        xavier     sqrt(2 / (fan_in + fan_out))        Glorot and Bengio 2010, 12, as its normal form
        kaiming    sqrt(2 / fan_in)                    He et al. 2015b, 10: for a rectifier

    A convolution has a fan for each place of its kernel. Everything else stays as it is: biases (zero, but
    where a gate means something by them), tables, norms, recurrent matrices and scans, experts, and frozen
    weights. Since `last` stays small, the first loss is near ln C where features are of size one.
    """
    if rule == "default":
        return
    for module in model.modules():
        if isinstance(module, nn.Linear | _ConvNd) and module is not last and module.weight.requires_grad:
            nn.init.normal_(module.weight, std=init_std(rule, *fan_in_and_fan_out(module)))


def fan_in_and_fan_out(layer: nn.Linear | _ConvNd) -> tuple[int, int]:
    """How many numbers each output sees, and how many outputs see each number (at stride 1)."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    places = math.prod(layer.kernel_size)
    return layer.in_channels // layer.groups * places, layer.out_channels // layer.groups * places


def init_std(rule: str, fan_in: int, fan_out: int) -> float:
    if rule == "xavier":
        return math.sqrt(2 / (fan_in + fan_out))
    return math.sqrt(2 / fan_in) if rule == "kaiming" else float(rule)
