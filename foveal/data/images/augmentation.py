"""Changes of images that leave what they show; what is drawn for each image is passed in.

Images are (B, C, H, W), standardised (zero is the mean) where nothing else is said.
"""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped, UInt8
from torch import Tensor
from torch.nn import functional as F

Images = Float[Tensor, "B C H W"]
PixelIndices = Int[Tensor, " B"]
LUMA = (0.299, 0.587, 0.114)
"""How bright red, green and blue are (ITU-R BT.601)."""


MIN_CROP_AREA, MAX_CROP_RATIO = 0.08, 4 / 3
"""Share of the area that `random_crop_boxes` leave, and width by height of the flattest."""


def random_crop_boxes(
    shapes: Int[Tensor, "B 2"],
    area: Float[Tensor, "T B"],
    ratio: Float[Tensor, "T B"],
    top: Float[Tensor, " B"],
    left: Float[Tensor, " B"],
) -> Int[Tensor, "B 4"]:
    """Top, left, height and width of a part of each image of `shapes` (Szegedy et al. 2014, section 6).

    Its area is from 8 to 100 % and its width by height from 3/4 to 4/3, the logarithm evenly; of the tries
    `T` the first that is inside, else the largest about the centre. What is drawn is in [0, 1).
    """
    wide = torch.exp((2 * ratio - 1) * math.log(MAX_CROP_RATIO))
    share = MIN_CROP_AREA + (1 - MIN_CROP_AREA) * area
    whole = shapes.T.double()
    surface = share * whole[0] * whole[1]
    sides = torch.stack([(surface / wide).sqrt(), (surface * wide).sqrt()]).round().long().clamp(min=1)
    inside = (sides <= shapes.T[:, None]).all(0)
    limits = (shapes.T.flip(0) * MAX_CROP_RATIO).long()
    largest = torch.minimum(shapes.T, limits)
    first = inside.long().argmax(0)
    chosen = torch.where(inside.any(0), sides[:, first, torch.arange(len(shapes))], largest)
    spare = shapes.T - chosen
    drawn = (torch.stack([top, left]) * (spare + 1)).long()
    start = torch.where(inside.any(0), drawn, spare // 2)
    return torch.cat([start, chosen]).T


def resized_crop(image: UInt8[Tensor, "H W C"], box: list[int], size: int) -> UInt8[Tensor, "C size size"]:
    """The `box` (top, left, height, width) of a picture as a square, antialiased."""
    top, left, height, width = box
    part = image[top : top + height, left : left + width].permute(2, 0, 1)
    return F.interpolate(part[None], (size, size), mode="bilinear", antialias=True)[0]


def color_jitter(
    levels: Images,
    brightness: Float[Tensor, " B"],
    contrast: Float[Tensor, " B"],
    saturation: Float[Tensor, " B"],
) -> Images:
    """Levels of 0 to 255, away from black, from their mean grey and from grey by factors (Howard 2013)."""

    def from_other(other: Tensor, factor: Tensor) -> Tensor:
        return torch.lerp(other, levels, factor[:, None, None, None]).clamp(0, 255)

    levels = from_other(torch.zeros(()), brightness)
    levels = from_other(to_grayscale(levels).mean((1, 2, 3), keepdim=True), contrast)
    return from_other(to_grayscale(levels), saturation)


def to_grayscale(levels: Images) -> Float[Tensor, "B 1 H W"]:
    if levels.shape[1] == 1:
        return levels
    return torch.einsum("bchw,c->bhw", levels, torch.tensor(LUMA))[:, None]


def crop_with_padding(
    image: UInt8[np.ndarray, "H W C"],
    top: int,
    left: int,
    size: int,
    fill: Float[np.ndarray, " C"] | None,
) -> Shaped[np.ndarray, "size size C"]:
    """A square of the picture, which may lie over its border: `fill` it there is that colour (He et al.
    2015, 4.2), or where none is given the mirror image (Jordan 2024, 3.1)."""
    height, width, channels = image.shape
    if fill is None:
        return image[_reflected_indices(top, size, height)][:, _reflected_indices(left, size, width)]
    levels = np.broadcast_to(fill, (size, size, channels)).astype(np.float32)
    rows, columns = _inside_slice(top, size, height), _inside_slice(left, size, width)
    inside = image[top + rows.start : top + rows.stop, left + columns.start : left + columns.stop]
    levels[rows, columns] = inside
    return levels


def _reflected_indices(start: int, size: int, side: int) -> Int[np.ndarray, " size"]:
    """Places from `start` on, turned back where they lie beyond 0 .. side - 1."""
    last = side - 1
    return last - np.abs(last - np.abs(np.arange(start, start + size)))


def _inside_slice(start: int, size: int, side: int) -> slice:
    """Those of `size` places from `start` on that are within 0 .. side - 1."""
    first = min(max(0, -start), size)
    return slice(first, max(first, min(size, side - start)))


def horizontal_flip(images: Images, chosen: Bool[Tensor, " B"]) -> Images:
    """The `chosen` ones left to right (Krizhevsky et al. 2012, 4.1)."""
    return torch.where(chosen[:, None, None, None], images.flip(3), images)


def cutout(images: Images, row: PixelIndices, column: PixelIndices, side: int) -> Images:
    """A square of `side` about (row, column) set to zero, as far as it lies in the image (DeVries and Taylor
    2017): zero is the mean of standardised pixels."""

    def inside(size: int, center: PixelIndices) -> Bool[Tensor, "B S"]:
        from_start = torch.arange(size) - (center - side // 2)[:, None]
        return (from_start >= 0) & (from_start < side)

    height, width = images.shape[2:]
    square = inside(height, row)[:, :, None] & inside(width, column)[:, None, :]
    return images.masked_fill(square[:, None], 0)


def mixup(columns: dict[str, Tensor], share: Float[Tensor, " B"]) -> dict[str, Tensor]:
    """Of each image (`source`) its `share`, the rest of the one before it (Zhang et al. 2018, "mixup").

    The loss is mixed alike, by `share` of what is said against `label`, the rest against `other`.
    """
    images, weight = columns["source"], share[:, None, None, None]
    source = torch.lerp(images.roll(1, 0), images, weight)
    return columns | {"source": source, "other": columns["label"].roll(1), "share": share}
