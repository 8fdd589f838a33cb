"""A linear classifier of features from before learning: colours, edges, visual words."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.flatten_classification import FlatClassifier
from foveal.layers.vision.handcrafted_features import ColourHistogram, OrientedGradients, Standardised
from foveal.layers.vision.visual_words import VisualWords


@dataclass(frozen=True)
class FeatureNetwork:
    """`W f(x) + b`: nothing but W and b is learned. `side` is that of the maps, if it is always the same."""

    feature: Callable[[int], tuple[nn.Module, int]]
    """Of images with so many channels; and how many maps it gives."""
    side: int | None = None

    def encoder(self, channels: int, small: bool) -> ImageEncoder:
        feature, width = self.feature(channels)
        return ImageEncoder([Standardised(feature, width)], width, self.side)

    def head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return FlatClassifier(width, grid, (), classes)


BINS, ORIENTATIONS, WORDS = 8, 9, 400
COLOURS = FeatureNetwork(lambda channels: (ColourHistogram(BINS), BINS**channels), side=1)
EDGES = FeatureNetwork(lambda channels: (OrientedGradients(ORIENTATIONS), ORIENTATIONS))
VISUAL_WORDS = FeatureNetwork(lambda channels: (VisualWords(channels, WORDS, side=6), WORDS), side=2)
