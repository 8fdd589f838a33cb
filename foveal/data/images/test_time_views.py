"""Views of an image for test-time augmentation: a model's predictions for the views are averaged."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn import functional as F

ViewName = Literal["none", "flip", "flip-shift", "ten-crop"]
VIEW_COUNTS: dict[ViewName, int] = {"none": 1, "flip": 2, "flip-shift": 6, "ten-crop": 10}
"""Views at each scale."""


def make_views(
    image: UInt8[Tensor, "C H W"], size: int, crops: ViewName, scales: Sequence[float]
) -> UInt8[Tensor, "V C size size"]:
    """Return squares of `size` pixels of the image, resized to each scale, but to sides of at least `size`.

    * `none`: the center.
    * `flip`: the center and its mirror image.
    * `flip-shift`: both, also shifted by a pixel up and left, and down and right, with a reflected
      border (Jordan 2024, 3.5).
    * `ten-crop`: the center and the four corners, each with its mirror image (Krizhevsky et al. 2012, 4.1).

    Simonyan and Zisserman 2015 (3.2) use several scales.
    """
    return torch.cat([_crops(_scale(image, size, scale), size, crops) for scale in scales])


def _scale(image: Tensor, size: int, scale: float) -> Tensor:
    sides = [max(size, round(scale * side)) for side in image.shape[1:]]
    if sides == list(image.shape[1:]):
        return image
    return F.interpolate(image[None], sides, mode="bilinear", antialias=True)[0]


def _crops(image: Tensor, size: int, crops: ViewName) -> Tensor:
    spare = [side - size for side in image.shape[1:]]
    top, left = spare[0] // 2, spare[1] // 2
    corners = [(top, left)]
    if crops == "ten-crop":
        corners += [(top, left) for top in (0, spare[0]) for left in (0, spare[1])]
    elif crops == "flip-shift":
        image = F.pad(image[None], (1, 1, 1, 1), mode="reflect")[0]
        corners = [(top + shift, left + shift) for shift in (1, 0, 2)]
    squares = torch.stack([image[:, top : top + size, left : left + size] for top, left in corners])
    return squares if crops == "none" else torch.cat([squares, squares.flip(3)])
