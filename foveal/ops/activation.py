"""Activation functions by name."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor
from torch.nn import functional as F

Activation = Literal["gelu", "gelu-tanh", "relu"]


def gelu_tanh(x: Tensor) -> Tensor:
    """`x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, GPT-2's GELU (Hendrycks and Gimpel 2016)."""
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu-tanh": gelu_tanh,
    "relu": F.relu,
}
