"""Features of images that are computed, not learned: how often which colour is seen, which way edges go."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.layers.data_dependent_init import DataDependentInit
from foveal.ops.vision.histogram import (
    code_frequencies,
    color_codes,
    gradient_orientation_votes,
    local_contrast_normalize,
)

IMAGES_PER_CHUNK = 32
"""Images whose features are computed at a time."""


class StandardizedFeatures(nn.Module):
    """`(f(x) - m) / s`: the maps of `feature` in a size at which a classifier learns them easily.

    m is the mean of each map, s one deviation for all of them, so that rare colours or words are not blown
    up. Both are those of some training images, over all places; until `fit` they are 0 and 1.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, feature: nn.Module, width: int):
        super().__init__()
        self.feature = feature
        self.register_buffer("mean", torch.zeros(width, 1, 1))
        self.register_buffer("deviation", torch.ones(()))

    @torch.no_grad()
    def fit(self, images: Float[Tensor, "N C H W"]) -> None:
        """See `layers.data_dependent_init`."""
        if isinstance(self.feature, DataDependentInit):
            self.feature.fit(images)
        maps = torch.cat(
            [
                self.feature(images[at : at + IMAGES_PER_CHUNK])
                for at in range(0, len(images), IMAGES_PER_CHUNK)
            ]
        )
        self.mean.copy_(maps.mean((0, 2, 3))[:, None, None])
        spread = (maps - self.mean).square().mean().sqrt()
        self.deviation.copy_(spread if spread > 0 else torch.ones_like(spread))

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        return (self.feature(images) - self.mean) / self.deviation


class ColorHistogram(nn.Module):
    """The root of the share of the pixels in each of `bins^C` boxes of colours, as one place (B, D, 1, 1).

    Pixels are standardised: each channel is cut into bins of half a standard deviation around the mean, the
    outer two open. Of roots, a linear classifier compares by `sum_k sqrt(p_k q_k)` (Bhattacharyya 1943),
    which frequent colours rule less than `sum_k p_k q_k`.
    """

    def __init__(self, bins: int):
        super().__init__()
        self.bins = bins

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D 1 1"]:
        codes = color_codes(images, self.bins, width=0.5)
        found = code_frequencies(codes, self.bins ** images.shape[1], images.dtype)
        return found.sqrt()[:, :, None, None]


class HistogramOfOrientedGradients(nn.Module):
    """Histograms of oriented gradients over cells of 8 x 8 pixels (Dalal and Triggs 2005).

    A map for each of `orientations` between 0 and 180 degrees: the mean vote
    (`gradient_orientation_votes`) of a cell's pixels. Simpler than in the paper: a pixel votes in its own
    cell only, and instead of overlapping blocks that hold each cell four times, each is once divided by the
    strength of the 3 x 3 cells around it. Pixels that fill no cell, at the right and at the bottom, are left
    out.
    """

    def __init__(self, orientations: int):
        super().__init__()
        self.orientations = orientations
        self.cells = nn.AvgPool2d(8)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B O h w"]:
        return local_contrast_normalize(
            self.cells(gradient_orientation_votes(images, self.orientations)), epsilon=0.02
        )
