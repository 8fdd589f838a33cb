"""Linear classifiers on features from before deep learning: colors, edges, visual words."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.flatten_classification import FlattenClassificationHead
from foveal.layers.vision.handcrafted_features import (
    ColorHistogram,
    HistogramOfOrientedGradients,
    StandardizedFeatures,
)
from foveal.layers.vision.visual_words import PatchSimilarities, VisualWords


@dataclass(frozen=True)
class HandcraftedNetwork:
    """`W f(x) + b`, in which only W and b are learned. `side` is the side of the maps, if it is the same for
    all images."""

    feature: Callable[[int], tuple[nn.Module, int]]
    """Maps the number of channels of the images to a feature and its number of maps."""
    side: int | None = None

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        feature, width = self.feature(channels)
        return ImageEncoder([StandardizedFeatures(feature, width)], width, self.side)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return FlattenClassificationHead(width, grid, (), classes)


COLOR_BINS, ORIENTATIONS, CODEBOOK_SIZE, SIMILARITY_WORDS = 8, 9, 400, 256
COLOR_HISTOGRAM = HandcraftedNetwork(
    lambda channels: (ColorHistogram(COLOR_BINS), COLOR_BINS**channels), side=1
)
HOG = HandcraftedNetwork(lambda channels: (HistogramOfOrientedGradients(ORIENTATIONS), ORIENTATIONS))
VISUAL_WORDS = HandcraftedNetwork(
    lambda channels: (VisualWords(channels, CODEBOOK_SIZE, side=6), CODEBOOK_SIZE), side=2
)
PATCH_SIMILARITIES = HandcraftedNetwork(
    lambda channels: (PatchSimilarities(channels, SIMILARITY_WORDS, side=6), 2 * SIMILARITY_WORDS), side=3
)
