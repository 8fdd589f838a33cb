"""Image features that are computed, not learned: histograms of colors and of edge directions."""

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
"""Images whose features are computed together."""


class StandardizedFeatures(nn.Module):
    """`(f(x) - m) / s`: the maps of `feature`, standardized so that a classifier learns them easily.

    m is the mean of each map. s is a single standard deviation for all maps, so that rare colors or words are
    not magnified. `fit` computes m and s from training images, over all positions. Before `fit`, m is 0 and s
    is 1.

    Example:

        >>> features = layers.StandardizedFeatures(layers.ColorHistogram(4), 4**3)
        >>> images = torch.randn(10, 3, 32, 32)
        >>> features.fit(images)
        >>> bool(features(images).mean().abs() < 1e-5)
        True
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
        """Compute the mean and the standard deviation; see `layers.data_dependent_init`."""
        if isinstance(self.feature, DataDependentInit):
            self.feature.fit(images)
        maps = torch.cat(
            [
                self.feature(images[start : start + IMAGES_PER_CHUNK])
                for start in range(0, len(images), IMAGES_PER_CHUNK)
            ]
        )
        self.mean.copy_(maps.mean((0, 2, 3))[:, None, None])
        spread = (maps - self.mean).square().mean().sqrt()
        self.deviation.copy_(spread if spread > 0 else torch.ones_like(spread))

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        return (self.feature(images) - self.mean) / self.deviation


class ColorHistogram(nn.Module):
    """The square roots of the fractions of pixels in each of `bins^C` color bins, at a single position (B, D,
    1, 1).

    Pixels are standardized. Each channel is divided into bins of half a standard deviation around the mean,
    and the two outer bins are open. With square roots, a linear classifier compares images by `sum_k sqrt(p_k
    q_k)` (Bhattacharyya 1943), in which frequent colors have less weight than in `sum_k p_k q_k`.

    Example:

        >>> y = layers.ColorHistogram(4)(torch.randn(2, 3, 32, 32))
        >>> tuple(y.shape), bool(y.square().sum(1).sub(1).abs().max() < 1e-5)
        ((2, 64, 1, 1), True)
    """

    def __init__(self, bins: int):
        super().__init__()
        self.bins = bins

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D 1 1"]:
        codes = color_codes(images, self.bins, width=0.5)
        frequencies = code_frequencies(codes, self.bins ** images.shape[1], images.dtype)
        return frequencies.sqrt()[:, :, None, None]


class HistogramOfOrientedGradients(nn.Module):
    """Histograms of oriented gradients over cells of 8 x 8 pixels (Dalal and Triggs 2005).

    There is a map for each of the `orientations` between 0 and 180 degrees. The values of a map are the mean
    votes (`gradient_orientation_votes`) of the pixels of a cell. Two things are simpler than in the paper: a
    pixel votes in its own cell only, and each cell is divided once by the strength of the 3 x 3 cells around
    it, instead of four times in overlapping blocks. Pixels at the right and at the bottom that fill no cell
    are ignored.

    Example:

        >>> tuple(layers.HistogramOfOrientedGradients(9)(torch.randn(2, 3, 32, 32)).shape)
        (2, 9, 4, 4)
    """

    def __init__(self, orientations: int):
        super().__init__()
        self.orientations = orientations
        self.cells = nn.AvgPool2d(8)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B O h w"]:
        return local_contrast_normalize(
            self.cells(gradient_orientation_votes(images, self.orientations)), epsilon=0.02
        )
