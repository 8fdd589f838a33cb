"""Image augmentation. The random numbers for each image are arguments.

Images are (B, C, H, W) and standardized (zero is the mean), unless stated otherwise.
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
"""Weights of red, green and blue in the brightness (ITU-R BT.601)."""


MIN_CROP_AREA, MAX_CROP_RATIO = 0.08, 4 / 3
"""Smallest fraction of the area, and largest ratio of width to height, of `random_crop_boxes`."""


def random_crop_boxes(
    shapes: Int[Tensor, "B 2"],
    area: Float[Tensor, "T B"],
    ratio: Float[Tensor, "T B"],
    top: Float[Tensor, " B"],
    left: Float[Tensor, " B"],
) -> Int[Tensor, "B 4"]:
    """Return the top, left, height and width of a random crop of each image (Szegedy et al. 2014, section 6).

    `shapes` are heights and widths. A crop has 8 to 100 % of the area, and an aspect ratio (width to height)
    from 3/4 to 4/3, uniform in the logarithm. `area`, `ratio`, `top` and `left` are random numbers in [0, 1).
    There are T tries. The first crop that lies inside the image is used. If there is none, the largest crop
    at the center is used.
    """
    aspect = torch.exp((2 * ratio - 1) * math.log(MAX_CROP_RATIO))
    fraction = MIN_CROP_AREA + (1 - MIN_CROP_AREA) * area
    height, width = shapes.T.double()
    pixels = fraction * height * width
    sides = torch.stack([(pixels / aspect).sqrt(), (pixels * aspect).sqrt()]).round().long().clamp(min=1)
    inside = (sides <= shapes.T[:, None]).all(0)
    limits = (shapes.T.flip(0) * MAX_CROP_RATIO).long()
    largest = torch.minimum(shapes.T, limits)
    first = inside.long().argmax(0)
    chosen = torch.where(inside.any(0), sides[:, first, torch.arange(len(shapes))], largest)
    spare = shapes.T - chosen
    random_start = (torch.stack([top, left]) * (spare + 1)).long()
    start = torch.where(inside.any(0), random_start, spare // 2)
    return torch.cat([start, chosen]).T


def resized_crop(image: UInt8[Tensor, "H W C"], box: list[int], size: int) -> UInt8[Tensor, "C size size"]:
    """Resize the `box` (top, left, height, width) of an image to a square, antialiased."""
    top, left, height, width = box
    crop = image[top : top + height, left : left + width].permute(2, 0, 1)
    return F.interpolate(crop[None], (size, size), mode="bilinear", antialias=True)[0]


def color_jitter(
    levels: Images,
    brightness: Float[Tensor, " B"],
    contrast: Float[Tensor, " B"],
    saturation: Float[Tensor, " B"],
) -> Images:
    """Change the brightness, contrast and saturation of pixel values from 0 to 255 (Howard 2013).

    Each factor scales the difference from black, from the mean gray of the image, or from the gray of the
    pixel.
    """

    def scale_from(origin: Tensor, factor: Tensor) -> Tensor:
        return torch.lerp(origin, levels, factor[:, None, None, None]).clamp(0, 255)

    levels = scale_from(torch.zeros(()), brightness)
    levels = scale_from(to_grayscale(levels).mean((1, 2, 3), keepdim=True), contrast)
    return scale_from(to_grayscale(levels), saturation)


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
    """Return a square of the image, which may extend beyond the border.

    Pixels beyond the border have the color `fill` (He et al. 2015, 4.2). If `fill` is None, the image is
    reflected (Jordan 2024, 3.1).
    """
    height, width, channels = image.shape
    if fill is None:
        return image[_reflected_indices(top, size, height)][:, _reflected_indices(left, size, width)]
    levels = np.broadcast_to(fill, (size, size, channels)).astype(np.float32)
    rows, columns = _inside_slice(top, size, height), _inside_slice(left, size, width)
    inside = image[top + rows.start : top + rows.stop, left + columns.start : left + columns.stop]
    levels[rows, columns] = inside
    return levels


def _reflected_indices(start: int, size: int, side: int) -> Int[np.ndarray, " size"]:
    """Return the indices from `start` on, reflected into 0 .. side - 1."""
    last = side - 1
    return last - np.abs(last - np.abs(np.arange(start, start + size)))


def _inside_slice(start: int, size: int, side: int) -> slice:
    """Return the slice of the `size` indices from `start` on that are within 0 .. side - 1."""
    first = min(max(0, -start), size)
    return slice(first, max(first, min(size, side - start)))


def horizontal_flip(images: Images, chosen: Bool[Tensor, " B"]) -> Images:
    """Mirror the `chosen` images left to right (Krizhevsky et al. 2012, 4.1)."""
    return torch.where(chosen[:, None, None, None], images.flip(3), images)


def cutout(images: Images, row: PixelIndices, column: PixelIndices, side: int) -> Images:
    """Set a square of `side` pixels with center (row, column) to zero, the mean of standardized pixels.

    (DeVries and Taylor 2017, "cutout".) The part of the square outside the image is ignored.
    """

    def inside(size: int, center: PixelIndices) -> Bool[Tensor, "B S"]:
        offset = torch.arange(size) - (center - side // 2)[:, None]
        return (offset >= 0) & (offset < side)

    height, width = images.shape[2:]
    square = inside(height, row)[:, :, None] & inside(width, column)[:, None, :]
    return images.masked_fill(square[:, None], 0)


def mixup(columns: dict[str, Tensor], share: Float[Tensor, " B"]) -> dict[str, Tensor]:
    """Mix each image (`source`) with the previous image in the batch, by `share` (Zhang et al. 2018,
    "mixup").

    The loss is mixed in the same way: `share` of the loss for `label`, and the rest of the loss for `other`.
    """
    images, weight = columns["source"], share[:, None, None, None]
    source = torch.lerp(images.roll(1, 0), images, weight)
    return columns | {"source": source, "other": columns["label"].roll(1), "share": share}
