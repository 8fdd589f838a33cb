"""Activation functions by name."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.gelu import gelu, gelu_tanh

Activation = Literal["sigmoid", "tanh", "relu", "leaky-relu", "elu", "gelu", "gelu-tanh", "silu"]
ActivationFunction = Callable[[Tensor], Tensor]


ACTIVATIONS: dict[Activation, ActivationFunction] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "leaky-relu": F.leaky_relu,
    "elu": F.elu,
    "gelu": gelu,
    "gelu-tanh": gelu_tanh,
    "silu": F.silu,
}
"""The functions, in this order: `1 / (1 + e^-x)`; `tanh x`; `max(x, 0)` (Nair and Hinton 2010); below zero
`0.01 x` (Maas et al. 2013); below zero `e^x - 1` (Clevert et al. 2016); `ops.gelu` and its approximation; `x
sigmoid(x)` (Elfwing et al. 2018)."""
