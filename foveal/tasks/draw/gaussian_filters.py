"""A grid of Gaussian filters over an image, which reads a patch of the image or writes a patch."""

import torch
from jaxtyping import Float
from torch import Tensor


def filter_grid(
    parameters: Float[Tensor, "B 5"], count: int, height: int, width: int
) -> tuple[Float[Tensor, "B N H"], Float[Tensor, "B N W"], Float[Tensor, " B"]]:
    """Return `F_Y`, `F_X` and `gamma` for a decoder's `g_X, g_Y, log sigma^2, log delta, log gamma`.

    These parameters are the center of the grid, the variance of the filters, their distance, and the
    intensity (Gregor et al. 2015, equations 21 to 24). If all parameters are zero, the grid covers the whole
    image.
    """
    across, down, variance, stride, strength = parameters.unbind(1)
    stride = (max(height, width) - 1) / max(1, count - 1) * stride.exp()
    std = (variance / 2).exp()
    rows = gaussian_filters((height + 1) / 2 * (down + 1), stride, std, count, height)
    columns = gaussian_filters((width + 1) / 2 * (across + 1), stride, std, count, width)
    return rows, columns, strength.exp()


def gaussian_filters(
    center: Float[Tensor, " B"],
    stride: Float[Tensor, " B"],
    std: Float[Tensor, " B"],
    count: int,
    extent: int,
) -> Float[Tensor, "B N A"]:
    """Return `F[i, a] = exp(-(a - mu_i)^2 / (2 sigma^2)) / Z`, `mu_i = g + (i - N/2 - 1/2) delta` (Gregor et
    al. 2015, equations 19, 20, 25, 26).

    i is from 1 to N, and a from 1 to A. Each filter sums to 1, even far outside the image.
    """
    i = torch.arange(1, count + 1, device=center.device, dtype=center.dtype)
    a = torch.arange(1, extent + 1, device=center.device, dtype=center.dtype)
    means = center[:, None] + (i - count / 2 - 0.5) * stride[:, None]
    return (-(a - means[:, :, None]).square() / (2 * std.square()[:, None, None])).softmax(2)


def read_patch(
    images: Float[Tensor, "B H W"], rows: Float[Tensor, "B N H"], columns: Float[Tensor, "B N W"]
) -> Float[Tensor, "B N N"]:
    """Return `F_Y x F_X^T` (equation 27, without gamma)."""
    return rows @ images @ columns.transpose(1, 2)


def write_patch(
    patch: Float[Tensor, "B N N"], rows: Float[Tensor, "B N H"], columns: Float[Tensor, "B N W"]
) -> Float[Tensor, "B H W"]:
    """Return `F_Y^T w F_X` (equation 29, without gamma)."""
    return rows.transpose(1, 2) @ patch @ columns
