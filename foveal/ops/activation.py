"""Activation functions by name."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Activation = Literal["sigmoid", "tanh", "relu", "leaky-relu", "elu", "gelu", "gelu-tanh", "silu"]
Function = Callable[[Tensor], Tensor]


def gelu_tanh(x: Tensor) -> Tensor:
    """`x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, GPT-2's GELU (Hendrycks and Gimpel 2016)."""
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[Activation, Function] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "leaky-relu": F.leaky_relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "gelu-tanh": gelu_tanh,
    "silu": F.silu,
}
"""`1 / (1 + e^-x)`; `tanh x`; `max(x, 0)` (Nair and Hinton 2010); below zero `0.01 x` (Maas et al. 2013), or
`e^x - 1` (Clevert et al. 2016); `x Phi(x)`, Phi the normal distribution's (Hendrycks and Gimpel 2016), and
its approximation; `x sigmoid(x)` (Elfwing et al. 2018)."""
