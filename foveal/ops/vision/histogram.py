"""Histograms of an image: colors, and the orientations of edges."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def code_frequencies(codes: Int[Tensor, "B N"], count: int, dtype: torch.dtype) -> Float[Tensor, "B K"]:
    """Return how often each of the codes 0 .. K - 1 occurs among a row's N codes, as fractions that sum to 1.

    K is `count`.
    """
    ones = torch.ones(codes.shape, dtype=dtype, device=codes.device)
    return ones.new_zeros(len(codes), count).scatter_add_(1, codes, ones) / codes.shape[1]


def color_codes(images: Float[Tensor, "B C H W"], bins: int, width: float) -> Int[Tensor, "B N"]:
    """Return the index of each pixel's color bin, of `bins^C` bins (Swain and Ballard 1991).

    Each channel is split into `bins` bins of `width` around 0, the mean of standardized pixels. The first and
    the last bin are open.
    """
    levels = (images / width + bins / 2).floor().clamp(0, bins - 1).long()
    codes = levels[:, 0]
    for channel in levels.unbind(1)[1:]:
        codes = codes * bins + channel
    return codes.flatten(1)


def gradient_orientation_votes(
    images: Float[Tensor, "B C H W"], orientations: int
) -> Float[Tensor, "B O H W"]:
    """Return each pixel's votes for the orientation of the edge at the pixel (Dalal and Triggs 2005, 6.2 to
    6.3).

    `g = (x[., +1] - x[., -1], x[+1, .] - x[-1, .])`, in the channel where |g| is largest. At the border,
    pixels are replicated. |g| is divided between the two nearest of the orientations (o + 1/2) 180 / O
    degrees, in proportion to their closeness. A gradient and its opposite count as the same orientation.
    """
    x = F.pad(images, (1, 1, 1, 1), mode="replicate")
    across, down = x[..., 1:-1, 2:] - x[..., 1:-1, :-2], x[..., 2:, 1:-1] - x[..., :-2, 1:-1]
    square, channel = (across.square() + down.square()).max(1, keepdim=True)
    angle = torch.atan2(down.gather(1, channel), across.gather(1, channel))
    position = angle * (orientations / math.pi) - 0.5
    low = position.floor()
    high_share, magnitude = position - low, square.sqrt()
    first = low.long().remainder(orientations)
    votes = magnitude.new_zeros(len(images), orientations, *images.shape[2:])
    votes.scatter_(1, first, magnitude * (1 - high_share))
    return votes.scatter_(1, (first + 1).remainder(orientations), magnitude * high_share)


def local_contrast_normalize(cells: Float[Tensor, "B O h w"], epsilon: float) -> Float[Tensor, "B O h w"]:
    """Return `v / sqrt(mean |v'|^2 + epsilon^2)`, with the mean over the 3 x 3 cells around v that lie in the
    image."""
    energy = cells.square().sum(1, keepdim=True)
    around = F.avg_pool2d(energy, 3, stride=1, padding=1, count_include_pad=False)
    return cells / (around + epsilon**2).sqrt()
