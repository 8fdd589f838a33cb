"""Convolutional networks for images by their published names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.classify import Classifier
from foveal.layers.grid_convolution import NormedConv
from foveal.layers.residual import Residual, Shortcut, basic, bottleneck

Stem = Literal["published", "small"]
"""How a network begins; small, for images of about 32 pixels, is 3x3 at stride 1 without pooling."""


@dataclass(frozen=True)
class ResidualNetwork:
    """A first layer, and stages of `depths[i]` blocks of `widths[i]` channels (He et al. 2015, table 1).

    Every stage but the first begins with stride 2.
    """

    body: Callable[[int, int, int], nn.Module]
    depths: tuple[int, ...]
    widths: tuple[int, ...]
    shortcut: Shortcut
    first: int
    """Channels of the first layer."""
    pooled: bool = True
    """Whether the published first layer is 7x7 at stride 2 with pooling, or already the small one."""

    def encoder(self, channels: int, stem: Stem) -> ImageEncoder:
        if self.pooled and stem == "published":
            pool = nn.MaxPool2d(3, stride=2, padding=1)
            blocks: list[nn.Module] = [nn.Sequential(NormedConv(channels, self.first, 7, 2), pool)]
        else:
            blocks = [NormedConv(channels, self.first, 3)]
        d_in = self.first
        for stage, (depth, width) in enumerate(zip(self.depths, self.widths, strict=True)):
            for block in range(depth):
                stride = 2 if stage and not block else 1
                body = self.body(d_in, width, stride)
                blocks.append(Residual(body, d_in, width, stride, self.shortcut))
                d_in = width
        return ImageEncoder(blocks, d_in)

    def head(self, encoder: ImageEncoder, size: int, classes: int, dropout: float) -> nn.Module:
        return Classifier(encoder.width, classes, "mean", dropout)


def _small(layers: int, shortcut: Shortcut) -> ResidualNetwork:
    """For images of 32 pixels: 6n + 2 layers in three stages (4.2)."""
    n = (layers - 2) // 6
    return ResidualNetwork(basic, (n, n, n), (16, 32, 64), shortcut, first=16, pooled=False)


def _basic(depths: tuple[int, ...], shortcut: Shortcut = "projection") -> ResidualNetwork:
    return ResidualNetwork(basic, depths, (64, 128, 256, 512), shortcut, first=64)


def _bottleneck(depths: tuple[int, ...]) -> ResidualNetwork:
    return ResidualNetwork(bottleneck, depths, (256, 512, 1024, 2048), "projection", first=64)


NETWORKS: dict[str, ResidualNetwork] = {
    "plain-20": _small(20, "none"),
    "plain-56": _small(56, "none"),
    "resnet-20": _small(20, "padded"),
    "resnet-32": _small(32, "padded"),
    "resnet-44": _small(44, "padded"),
    "resnet-56": _small(56, "padded"),
    "resnet-110": _small(110, "padded"),
    "plain-18": _basic((2, 2, 2, 2), "none"),
    "plain-34": _basic((3, 4, 6, 3), "none"),
    "resnet-18": _basic((2, 2, 2, 2)),
    "resnet-34": _basic((3, 4, 6, 3)),
    "resnet-50": _bottleneck((3, 4, 6, 3)),
    "resnet-101": _bottleneck((3, 4, 23, 3)),
    "resnet-152": _bottleneck((3, 8, 36, 3)),
}


def image_encoder(network: str, channels: int, stem: Stem) -> ImageEncoder:
    """The named network without its classifier, for images of `channels`."""
    return NETWORKS[network].encoder(channels, stem)


def image_head(network: str, encoder: ImageEncoder, size: int, classes: int, dropout: float) -> nn.Module:
    """The named network's classifier behind its `encoder`, for images of `size` by `size` pixels."""
    return NETWORKS[network].head(encoder, size, classes, dropout)
