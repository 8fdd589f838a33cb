"""The pixels of an image x that a score f(x) depends on.

    gradient              df/dx                                                 (Simonyan et al. 2014)
    SmoothGrad            mean over n of df/dx at x + noise_n                    (Smilkov et al. 2017)
    integrated gradients  (x - b) * mean over t of df/dx at b + t (x - b)        (Sundararajan et al. 2017)
    occlusion             f(x) - f(x with a window replaced by b)               (Zeiler and Fergus 2014)

b is the baseline, an image without content: 0, which is the mean color of the training images. Integrated
gradients are complete: over all pixels they sum to f(x) - f(b), but for the error of a sum over finitely many
t, which is returned as the gap.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from foveal.inspection.image_gradients import ImageScore, score_gradient

BATCH_SIZE = 16
"""Changed images that are scored together."""


class IntegratedGradients(NamedTuple):
    attributions: Float[Tensor, "C H W"]
    change: float
    """f(x) - f(b)."""

    @property
    def gap(self) -> float:
        """The part of the change that the attributions do not sum to."""
        return float(self.attributions.double().sum()) - self.change


def smooth_gradient(
    score: ImageScore, image: Float[Tensor, "C H W"], noise: float, samples: int, seed: int
) -> Float[Tensor, "C H W"]:
    """Return the mean gradient over `samples` copies of the image with Gaussian noise.

    `noise` is the standard deviation, as a share of the range of the image's values.
    """
    generator = torch.Generator().manual_seed(seed)
    deviation, total = noise * float(image.max() - image.min()), torch.zeros_like(image)
    for count in _batch_sizes(samples):
        normal = torch.randn((count, *image.shape), generator=generator).to(image.device)
        total += score_gradient(score, image + deviation * normal).sum(0)
    return total / samples


def integrated_gradients(
    score: ImageScore, image: Float[Tensor, "C H W"], baseline: Float[Tensor, "C H W"], steps: int
) -> IntegratedGradients:
    """Return the integrated gradients by the midpoint rule."""
    middles, total = (torch.arange(steps, device=image.device) + 0.5) / steps, torch.zeros_like(image)
    for part in torch.split(middles, BATCH_SIZE):
        points = baseline + part[:, None, None, None] * (image - baseline)
        total += score_gradient(score, points).sum(0)
    with torch.no_grad():
        end, start = score(torch.stack([image, baseline])).double().tolist()
    return IntegratedGradients((image - baseline) * total / steps, end - start)


def occlusion(
    score: ImageScore,
    image: Float[Tensor, "C H W"],
    baseline: Float[Tensor, "C H W"],
    window: int,
    stride: int,
) -> Float[Tensor, "H W"]:
    """Return the loss of score by occlusion of each pixel: the mean over all windows that cover the pixel."""
    _, H, W = image.shape
    tops, lefts = _window_starts(H, window, stride), _window_starts(W, window, stride)
    corners = [(top, left) for top in tops for left in lefts]
    drops, covers = torch.zeros(H, W, device=image.device), torch.zeros(H, W, device=image.device)
    with torch.no_grad():
        before = score(image[None])
        for start in range(0, len(corners), BATCH_SIZE):
            places = corners[start : start + BATCH_SIZE]
            occluded = image.repeat(len(places), 1, 1, 1)
            for one, (top, left) in zip(occluded, places, strict=True):
                rows, columns = slice(top, top + window), slice(left, left + window)
                one[:, rows, columns] = baseline[:, rows, columns]
            for drop, (top, left) in zip(before - score(occluded), places, strict=True):
                drops[top : top + window, left : left + window] += drop
                covers[top : top + window, left : left + window] += 1
    return drops / covers


def gradient_size(gradient: Float[Tensor, "C H W"]) -> Float[Tensor, "H W"]:
    """Return the largest absolute value over the channels (Simonyan et al. 2014, section 3.1)."""
    return gradient.abs().amax(0)


def salient_patches(saliency: Float[Tensor, "H W"], side: int, share: float) -> Bool[Tensor, "H W"]:
    """Return the pixels of the `share` of patches of `side` pixels with the largest mean saliency; at least
    one patch."""
    H, W = saliency.shape
    means = F.avg_pool2d(saliency[None], side, ceil_mode=True, count_include_pad=False)[0]
    return _pixels_of_largest(means.cpu(), side, share)[:H, :W]


def random_patches(
    shape: tuple[int, int], side: int, share: float, generator: torch.Generator
) -> Bool[Tensor, "H W"]:
    """Return the pixels of as many patches at random."""
    H, W = shape
    numbers = torch.rand(-(-H // side), -(-W // side), generator=generator)
    return _pixels_of_largest(numbers, side, share)[:H, :W]


def _pixels_of_largest(values: Float[Tensor, "h w"], side: int, share: float) -> Bool[Tensor, "H W"]:
    mask = torch.zeros(values.numel(), dtype=torch.bool)
    mask[values.flatten().topk(max(1, round(share * len(mask)))).indices] = True
    return mask.view(values.shape).repeat_interleave(side, 0).repeat_interleave(side, 1)


def _window_starts(size: int, window: int, stride: int) -> list[int]:
    """Return where windows start, so that they cover all of `size` pixels."""
    last = max(0, size - window)
    return sorted({*range(0, last, stride), last})


def _batch_sizes(count: int) -> Iterator[int]:
    for start in range(0, count, BATCH_SIZE):
        yield min(BATCH_SIZE, count - start)
