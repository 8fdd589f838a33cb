"""Networks whose convolutions over places have a filter for each channel: ConvNeXt and EfficientNet-Lite."""

from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.classification import Classifier
from foveal.heads.norm_classification import NormedClassifier
from foveal.layers.vision.conv2d import Conv2d
from foveal.layers.vision.convnext import ConvNext, GridNorm
from foveal.layers.vision.inverted_residual import Inverted, tensorflow_conv


@dataclass(frozen=True)
class ConvNextNetwork:
    """Stages of `depths[i]` blocks of `widths[i]` channels on patches of 4x4 (Liu et al. 2022, table 9).

    Without the stochastic depth of its recipe.
    """

    depths: tuple[int, ...]
    widths: tuple[int, ...]

    def encoder(self, channels: int, small: bool) -> ImageEncoder:
        first = self.widths[0]
        kernel, stride, padding = (3, 1, 1) if small else (4, 4, 0)
        patches = Conv2d(channels, first, kernel, stride, padding, bias=True)
        blocks: list[nn.Module] = [nn.Sequential(patches, GridNorm(first))]
        d_in = first
        for depth, width in zip(self.depths, self.widths, strict=True):
            if width != d_in:
                halving = Conv2d(d_in, width, 2, stride=2, padding=0, bias=True)
                blocks.append(nn.Sequential(GridNorm(d_in), halving))
            blocks += [ConvNext(width) for _ in range(depth)]
            d_in = width
        return ImageEncoder(blocks, d_in)

    def head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return NormedClassifier(width, classes, dropout)


@dataclass(frozen=True)
class Stage:
    """`depth` inverted residual blocks; the stride is the first one's."""

    depth: int
    width: int
    kernel: int
    stride: int
    expansion: int = 6


@dataclass(frozen=True)
class InvertedNetwork:
    """A convolution to `first` channels at stride 2, stages, and a 1x1 convolution to `last` channels."""

    stages: tuple[Stage, ...]
    first: int = 32
    last: int = 1280

    def encoder(self, channels: int, small: bool) -> ImageEncoder:
        blocks: list[nn.Module] = [tensorflow_conv(channels, self.first, 3, 1 if small else 2)]
        d_in = self.first
        for stage in self.stages:
            for block in range(stage.depth):
                stride = 1 if block else stage.stride
                blocks.append(Inverted(d_in, stage.width, stage.kernel, stride, stage.expansion))
                d_in = stage.width
        blocks.append(tensorflow_conv(d_in, self.last, 1))
        return ImageEncoder(blocks, self.last)

    def head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return Classifier(width, classes, "mean", dropout)


EFFICIENTNET_LITE0 = InvertedNetwork(
    (
        Stage(1, 16, 3, 1, expansion=1),
        Stage(2, 24, 3, 2),
        Stage(2, 40, 5, 2),
        Stage(3, 80, 3, 2),
        Stage(3, 112, 5, 1),
        Stage(4, 192, 5, 2),
        Stage(1, 320, 3, 1),
    )
)
"""EfficientNet-B0 (Tan and Le 2019, table 1) without squeeze and excitation and with ReLU6 (Liu 2020), for
small devices."""
