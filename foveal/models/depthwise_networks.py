"""Networks with depthwise convolutions: ConvNeXt and EfficientNet-Lite."""

from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.classification import ClassificationHead
from foveal.heads.norm_classification import NormClassificationHead
from foveal.layers.vision.conv2d import Conv2d
from foveal.layers.vision.convnext import ConvNeXtBlock, LayerNorm2d
from foveal.layers.vision.inverted_residual import InvertedResidual, tf_conv_norm_act


@dataclass(frozen=True)
class ConvNeXt:
    """Stages of `depths[i]` blocks of `widths[i]` channels, after patches of 4x4 (Liu et al. 2022, table 9).

    The stochastic depth of the paper's recipe is not implemented.
    """

    depths: tuple[int, ...]
    widths: tuple[int, ...]

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        first = self.widths[0]
        kernel, stride, padding = (3, 1, 1) if small else (4, 4, 0)
        patches = Conv2d(channels, first, kernel, stride, padding, bias=True)
        blocks: list[nn.Module] = [nn.Sequential(patches, LayerNorm2d(first))]
        d_in = first
        for depth, width in zip(self.depths, self.widths, strict=True):
            if width != d_in:
                downsampling = Conv2d(d_in, width, 2, stride=2, padding=0, bias=True)
                blocks.append(nn.Sequential(LayerNorm2d(d_in), downsampling))
            blocks += [ConvNeXtBlock(width) for _ in range(depth)]
            d_in = width
        return ImageEncoder(blocks, d_in)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return NormClassificationHead(width, classes, dropout)


@dataclass(frozen=True)
class InvertedStage:
    """`depth` inverted residual blocks; the first one has the stride."""

    depth: int
    width: int
    kernel: int
    stride: int
    expansion: int = 6


@dataclass(frozen=True)
class EfficientNetLite:
    """A convolution to `first` channels at stride 2, then stages, then a 1x1 convolution to `last`
    channels."""

    stages: tuple[InvertedStage, ...]
    first: int = 32
    last: int = 1280

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        blocks: list[nn.Module] = [tf_conv_norm_act(channels, self.first, 3, 1 if small else 2)]
        d_in = self.first
        for stage in self.stages:
            for block in range(stage.depth):
                stride = 1 if block else stage.stride
                blocks.append(InvertedResidual(d_in, stage.width, stage.kernel, stride, stage.expansion))
                d_in = stage.width
        blocks.append(tf_conv_norm_act(d_in, self.last, 1))
        return ImageEncoder(blocks, self.last)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return ClassificationHead(width, classes, "mean", dropout)


EFFICIENTNET_LITE0 = EfficientNetLite(
    (
        InvertedStage(1, 16, 3, 1, expansion=1),
        InvertedStage(2, 24, 3, 2),
        InvertedStage(2, 40, 5, 2),
        InvertedStage(3, 80, 3, 2),
        InvertedStage(3, 112, 5, 1),
        InvertedStage(4, 192, 5, 2),
        InvertedStage(1, 320, 3, 1),
    )
)
"""EfficientNet-B0 (Tan and Le 2019, table 1) for small devices: without squeeze and excitation, and with
ReLU6 (Liu 2020)."""
