"""Residual networks, and plain ones, which are the same without shortcuts (He, Zhang, Ren and Sun 2015)."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.classification import Classifier
from foveal.layers.vision.attention2d import GridAttention
from foveal.layers.vision.conv2d import NormedConv
from foveal.layers.vision.residual import Residual, Shortcut, basic, bottleneck
from foveal.ops.activation import ACTIVATIONS, Activation, Function


@dataclass(frozen=True)
class ResidualNetwork:
    """A first layer, and stages of `depths[i]` blocks of `widths[i]` channels (He et al. 2015, table 1).

    Every stage but the first begins with stride 2.
    """

    body: Callable[[int, int, int, Function], nn.Module]
    depths: tuple[int, ...]
    widths: tuple[int, ...]
    shortcut: Shortcut
    first: int
    """Channels of the first layer."""
    pooled: bool = True
    """Whether the published first layer is 7x7 at stride 2 with pooling, or already the small one."""
    activation: Activation = "relu"
    attention: int = 0
    """Stages before a block of attention over the grid; 0 means none."""

    def encoder(self, channels: int, small: bool) -> ImageEncoder:
        phi = ACTIVATIONS[self.activation]
        if self.pooled and not small:
            pool = nn.MaxPool2d(3, stride=2, padding=1)
            blocks: list[nn.Module] = [nn.Sequential(NormedConv(channels, self.first, 7, 2, phi), pool)]
        else:
            blocks = [NormedConv(channels, self.first, 3, activation=phi)]
        d_in = self.first
        for stage, (depth, width) in enumerate(zip(self.depths, self.widths, strict=True)):
            for block in range(depth):
                stride = 2 if stage and not block else 1
                body = self.body(d_in, width, stride, phi)
                blocks.append(Residual(body, d_in, width, stride, self.shortcut, phi))
                d_in = width
            if stage + 1 == self.attention:
                blocks.append(GridAttention(width))
        return ImageEncoder(blocks, d_in)

    def head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return Classifier(width, classes, "mean", dropout)


def small_network(layers: int, shortcut: Shortcut, attention: int = 0) -> ResidualNetwork:
    """For images of 32 pixels: 6n + 2 layers in three stages (4.2)."""
    n = (layers - 2) // 6
    widths = (16, 32, 64)
    return ResidualNetwork(basic, (n, n, n), widths, shortcut, first=16, pooled=False, attention=attention)


def basic_network(depths: tuple[int, ...], shortcut: Shortcut = "projection") -> ResidualNetwork:
    return ResidualNetwork(basic, depths, (64, 128, 256, 512), shortcut, first=64)


def bottleneck_network(depths: tuple[int, ...]) -> ResidualNetwork:
    return ResidualNetwork(bottleneck, depths, (256, 512, 1024, 2048), "projection", first=64)
