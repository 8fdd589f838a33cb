"""A grid of Gaussian filters laid over an image, to read a patch from it and to write one back."""

import torch
from jaxtyping import Float
from torch import Tensor


def filter_grid(
    parameters: Float[Tensor, "B 5"], count: int, height: int, width: int
) -> tuple[Float[Tensor, "B N H"], Float[Tensor, "B N W"], Float[Tensor, " B"]]:
    """`F_Y`, `F_X` and `gamma` of the numbers `g_X, g_Y, log sigma^2, log delta, log gamma` that a decoder
    gives (Gregor et al. 2015, equations 21 to 24): where the middle is, how wide a filter and how far the
    next one, and how strong. Zeros lay the grid over the whole image."""
    across, down, variance, stride, strength = parameters.unbind(1)
    stride = (max(height, width) - 1) / max(1, count - 1) * stride.exp()
    deviation = (variance / 2).exp()
    rows = gaussian_filters((height + 1) / 2 * (down + 1), stride, deviation, count, height)
    columns = gaussian_filters((width + 1) / 2 * (across + 1), stride, deviation, count, width)
    return rows, columns, strength.exp()


def gaussian_filters(
    center: Float[Tensor, " B"],
    stride: Float[Tensor, " B"],
    std: Float[Tensor, " B"],
    count: int,
    extent: int,
) -> Float[Tensor, "B N A"]:
    """`F[i, a] = exp(-(a - mu_i)^2 / (2 sigma^2)) / Z`, `mu_i = g + (i - N/2 - 1/2) delta` (Gregor et al.
    2015, equations 19, 20, 25, 26), i from 1 to N, a from 1 to A. Each filter sums to 1, also far outside."""
    i = torch.arange(1, count + 1, device=center.device, dtype=center.dtype)
    a = torch.arange(1, extent + 1, device=center.device, dtype=center.dtype)
    means = center[:, None] + (i - count / 2 - 0.5) * stride[:, None]
    return (-(a - means[:, :, None]).square() / (2 * std.square()[:, None, None])).softmax(2)


def read_patch(
    images: Float[Tensor, "B H W"], rows: Float[Tensor, "B N H"], columns: Float[Tensor, "B N W"]
) -> Float[Tensor, "B N N"]:
    """`F_Y x F_X^T` (equation 27, but for gamma)."""
    return rows @ images @ columns.transpose(1, 2)


def write_patch(
    patch: Float[Tensor, "B N N"], rows: Float[Tensor, "B N H"], columns: Float[Tensor, "B N W"]
) -> Float[Tensor, "B H W"]:
    """`F_Y^T w F_X` (equation 29, but for gamma)."""
    return rows.transpose(1, 2) @ patch @ columns
