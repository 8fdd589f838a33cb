"""Glimpses of an image: squares around a location. Each square is wider and coarser than the
previous square."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def glimpse_sensor(
    images: Float[Tensor, "B C H W"], locations: Float[Tensor, "B 2"], side: int, scales: int
) -> Float[Tensor, "B S C side side"]:
    """Return `rho(x, l)` of Mnih et al. 2014, section 3.1.

    Square s is `side * 2^s` pixels wide, and each of its pixels is the mean of 2^s x 2^s pixels of the image.
    `locations` are (vertical, horizontal), from -1 at the first edge of the image to 1 at the last. Pixels
    outside the image are 0. A location that is NaN stands for the center.
    """
    height, width = images.shape[2:]
    extents = torch.tensor([height, width], device=images.device)
    rows = torch.arange(len(images), device=images.device)[:, None, None]
    centers = (locations.nan_to_num().clamp(-1, 1) + 1) / 2 * extents
    squares = []
    for scale in range(scales):
        width_in_image = side << scale
        start = (centers - width_in_image / 2).round().long()
        offsets = torch.arange(width_in_image, device=images.device)
        down, across = (start[:, axis, None] + offsets for axis in (0, 1))
        inside = _inside(down, height)[:, :, None] & _inside(across, width)[:, None, :]
        square = images[
            rows, :, down.clamp(0, height - 1)[:, :, None], across.clamp(0, width - 1)[:, None, :]
        ]
        square = square.permute(0, 3, 1, 2).where(inside[:, None], 0)
        squares.append(F.avg_pool2d(square, 1 << scale) if scale else square)
    return torch.stack(squares, 1)


def _inside(locations: Tensor, extent: int) -> Tensor:
    return (locations >= 0) & (locations < extent)
