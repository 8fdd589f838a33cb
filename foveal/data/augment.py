"""Changes of images that leave what they show; what is drawn for each image is passed in.

Images are (B, C, H, W), standardised: zero is the mean.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

Images = Float[Tensor, "B C H W"]
Places = Int[Tensor, " B"]
LUMA = (0.299, 0.587, 0.114)
"""How bright red, green and blue are (ITU-R BT.601)."""


def shifted(images: Images, top: Places, left: Places, pad: int) -> Images:
    """Cut at `top` and `left` (0 .. 2 * pad) from the image with `pad` zeros around (He et al. 2015, 4.2)."""
    height, width = images.shape[2:]
    windows = F.pad(images, (pad, pad, pad, pad)).unfold(2, height, 1).unfold(3, width, 1)
    return windows[torch.arange(len(images)), :, top, left]


def flipped(images: Images, chosen: Bool[Tensor, " B"]) -> Images:
    """The `chosen` ones left to right (Krizhevsky et al. 2012, 4.1)."""
    return torch.where(chosen[:, None, None, None], images.flip(3), images)


def cut_out(images: Images, row: Places, column: Places, side: int) -> Images:
    """A square of `side` about (row, column) set to zero, as far as it lies in the image (DeVries and Taylor
    2017): zero is the mean of standardised pixels."""

    def inside(size: int, centre: Places) -> Bool[Tensor, "B S"]:
        from_start = torch.arange(size) - (centre - side // 2)[:, None]
        return (from_start >= 0) & (from_start < side)

    height, width = images.shape[2:]
    square = inside(height, row)[:, :, None] & inside(width, column)[:, None, :]
    return images.masked_fill(square[:, None], 0)
