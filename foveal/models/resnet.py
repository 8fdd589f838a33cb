"""Residual networks, and plain networks: the same layers without shortcuts (He, Zhang, Ren and Sun 2015)."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.classification import ClassificationHead
from foveal.layers.vision.attention2d import SelfAttention2d
from foveal.layers.vision.conv2d import ConvNormAct
from foveal.layers.vision.residual import ResidualBlock, Shortcut, basic_block, bottleneck_block
from foveal.ops.activation import ACTIVATIONS, Activation, ActivationFunction


@dataclass(frozen=True)
class ResNet:
    """A first layer, and stages of `depths[i]` blocks of `widths[i]` channels (He et al. 2015, table 1).

    Every stage but the first begins with stride 2.
    """

    body: Callable[[int, int, int, ActivationFunction], nn.Module]
    depths: tuple[int, ...]
    widths: tuple[int, ...]
    shortcut: Shortcut
    first: int
    """Channels of the first layer."""
    pooled: bool = True
    """Whether the published first layer is 7x7 at stride 2 with pooling. If not, it is already the small
    stem."""
    activation: Activation = "relu"
    attention: int = 0
    """Number of stages before a self-attention block over the grid; 0 means no such block."""

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        phi = ACTIVATIONS[self.activation]
        if self.pooled and not small:
            pool = nn.MaxPool2d(3, stride=2, padding=1)
            blocks: list[nn.Module] = [nn.Sequential(ConvNormAct(channels, self.first, 7, 2, phi), pool)]
        else:
            blocks = [ConvNormAct(channels, self.first, 3, activation=phi)]
        d_in = self.first
        for stage, (depth, width) in enumerate(zip(self.depths, self.widths, strict=True)):
            for block in range(depth):
                stride = 2 if stage and not block else 1
                body = self.body(d_in, width, stride, phi)
                blocks.append(ResidualBlock(body, d_in, width, stride, self.shortcut, phi))
                d_in = width
            if stage + 1 == self.attention:
                blocks.append(SelfAttention2d(width))
        return ImageEncoder(blocks, d_in)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return ClassificationHead(width, classes, "mean", dropout)


def small_resnet(layers: int, shortcut: Shortcut, attention: int = 0) -> ResNet:
    """Return a network for images of 32 pixels: 6n + 2 layers in three stages (4.2)."""
    n = (layers - 2) // 6
    widths = (16, 32, 64)
    return ResNet(basic_block, (n, n, n), widths, shortcut, first=16, pooled=False, attention=attention)


def basic_resnet(depths: tuple[int, ...], shortcut: Shortcut = "projection") -> ResNet:
    """Return a network of blocks with two 3x3 convolutions (table 1)."""
    return ResNet(basic_block, depths, (64, 128, 256, 512), shortcut, first=64)


def bottleneck_resnet(depths: tuple[int, ...]) -> ResNet:
    """Return a network of blocks that are narrow inside (table 1)."""
    return ResNet(bottleneck_block, depths, (256, 512, 1024, 2048), "projection", first=64)
