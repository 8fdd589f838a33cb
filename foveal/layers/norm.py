"""Normalization of each vector over its width."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.normalization import fused_rms_norm, layer_norm, rms_norm


class LayerNorm(nn.Module):
    """`ops.normalization.layer_norm` with a learned gain (initially ones) and bias (initially zeros).

    (Ba, Kiros and Hinton 2016.)

    Example:

        >>> layers.LayerNorm(2)(torch.tensor([1.0, 3.0])).detach()
        tensor([-1.0000,  1.0000])
    """

    def __init__(self, width: int, epsilon: float = 1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.gain)
        nn.init.zeros_(self.bias)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        if use_fast_path("layer_norm", "fused", True):
            return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.epsilon)
        return layer_norm(x, self.gain, self.bias, self.epsilon)


class RMSNorm(nn.Module):
    """`ops.normalization.rms_norm` with a learned gain (initially ones) (Zhang and Sennrich 2019).

    Example:

        >>> layers.RMSNorm(2)(torch.tensor([3.0, 3.0])).detach()
        tensor([1.0000, 1.0000])
    """

    def __init__(self, width: int, epsilon: float = 1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.gain)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        if use_fast_path("rms_norm", "fused", True):
            return fused_rms_norm(x, self.gain, self.epsilon)
        return rms_norm(x, self.gain, self.epsilon)


def make_norm(kind: Literal["none", "layer", "rms"], width: int, epsilon: float = 1e-5) -> nn.Module:
    """Return the norm called `kind`; `none` is the identity."""
    if kind == "none":
        return nn.Identity()
    return LayerNorm(width, epsilon) if kind == "layer" else RMSNorm(width, epsilon)
