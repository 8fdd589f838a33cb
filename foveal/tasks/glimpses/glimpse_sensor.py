"""Glimpses of an image: squares about a place, each wider and coarser than the one before."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def glimpse_sensor(
    images: Float[Tensor, "B C H W"], locations: Float[Tensor, "B 2"], side: int, scales: int
) -> Float[Tensor, "B S C side side"]:
    """`rho(x, l)` of Mnih et al. 2014, section 3.1: square s is `side * 2^s` pixels wide, its pixels are the
    means of 2^s x 2^s of the image's.

    `locations` are (down, across): -1 is the first edge of the image and 1 the last. What lies outside of the
    image is 0. A place that is no number is seen as the centre.
    """
    height, width = images.shape[2:]
    extents = torch.tensor([height, width], device=images.device)
    rows = torch.arange(len(images), device=images.device)[:, None, None]
    centres = (locations.nan_to_num().clamp(-1, 1) + 1) / 2 * extents
    seen = []
    for scale in range(scales):
        wide = side << scale
        start = (centres - wide / 2).round().long()
        down, across = (start[:, axis, None] + torch.arange(wide, device=images.device) for axis in (0, 1))
        inside = _inside(down, height)[:, :, None] & _inside(across, width)[:, None, :]
        square = images[
            rows, :, down.clamp(0, height - 1)[:, :, None], across.clamp(0, width - 1)[:, None, :]
        ]
        square = square.permute(0, 3, 1, 2).where(inside[:, None], 0)
        seen.append(F.avg_pool2d(square, 1 << scale) if scale else square)
    return torch.stack(seen, 1)


def _inside(locations: Tensor, extent: int) -> Tensor:
    return (locations >= 0) & (locations < extent)
