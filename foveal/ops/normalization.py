"""Layer normalisation and its root-mean-square form."""

import torch
from jaxtyping import Float
from torch import Tensor


def layer_norm(
    x: Float[Tensor, "*B D"], gain: Float[Tensor, " D"], bias: Float[Tensor, " D"], epsilon: float
) -> Float[Tensor, "*B D"]:
    """`(x - mu) / sqrt(sigma^2 + epsilon) * gain + bias`, of each vector over its D (Ba et al. 2016).

    The variance is the biased one (divided by D).
    """
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + epsilon).sqrt() * gain + bias


def rms_norm(x: Float[Tensor, "*B D"], gain: Float[Tensor, " D"], epsilon: float) -> Float[Tensor, "*B D"]:
    """`x / sqrt(epsilon + mean(x^2)) * gain` over D (Zhang and Sennrich 2019)."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * gain
