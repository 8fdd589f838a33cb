"""Convolutional networks for images by their published names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from foveal.config import ConfigError, nearest
from foveal.encoders.image import ImageEncoder
from foveal.heads.classify import Classifier
from foveal.heads.flat import FlatClassifier
from foveal.layers.grid_convolution import Conv2d, NormedConv
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
        return ImageEncoder(blocks, channels, d_in)

    def head(self, encoder: ImageEncoder, size: int, classes: int, dropout: float) -> nn.Module:
        return Classifier(encoder.width, classes, "mean", dropout)


@dataclass(frozen=True)
class Layer:
    """A convolution, its activation, and pooling at stride 2 over squares of side `pool`, unless it is 0."""

    width: int
    kernel: int = 3
    pool: int = 0
    stride: int = 1
    padding: int = 1


@dataclass(frozen=True)
class StraightNetwork:
    """Convolutions with biases, one after the other, then hidden layers that see all places of the grid.

    As published, those stand behind a grid of `side` by `side`, to which a larger one is averaged
    (torchvision); for images so small that the grid is smaller, they see that one.
    """

    layers: tuple[Layer, ...]
    hidden: tuple[int, ...]
    side: int
    activation: type[nn.Module] = nn.ReLU
    pooling: type[nn.Module] = nn.MaxPool2d

    def encoder(self, channels: int, stem: Stem) -> ImageEncoder:
        first, *others = self.layers
        if stem == "small" and first.stride > 1:
            first = Layer(first.width)
        blocks, d_in = [], channels
        for layer in (first, *others):
            convolution = Conv2d(d_in, layer.width, layer.kernel, layer.stride, layer.padding, bias=True)
            pool = [self.pooling(layer.pool, stride=2)] if layer.pool else []
            blocks.append(nn.Sequential(convolution, self.activation(), *pool))
            d_in = layer.width
        return ImageEncoder(blocks, channels, d_in)

    def head(self, encoder: ImageEncoder, size: int, classes: int, dropout: float) -> nn.Module:
        side = min(self.side, *encoder.grid(size))
        return FlatClassifier(encoder.width, (side, side), self.hidden, classes, dropout, self.activation())


def _vgg(*stages: int) -> StraightNetwork:
    """Five times some convolutions and pooling; 64 to 512 channels (Simonyan and Zisserman 2015, table 1)."""
    layers = [
        Layer(width, pool=2 if layer == depth - 1 else 0)
        for depth, width in zip(stages, (64, 128, 256, 512, 512), strict=True)
        for layer in range(depth)
    ]
    return StraightNetwork(tuple(layers), hidden=(4096, 4096), side=7)


LENET = StraightNetwork(
    (Layer(6, 5, pool=2, padding=0), Layer(16, 5, pool=2, padding=0)),
    hidden=(120, 84),
    side=5,
    activation=nn.Tanh,
    pooling=nn.AvgPool2d,
)
"""LeCun et al. 1998, but all maps of the second layer see all of the first, averages have no weights of their
own, and classes have a projection instead of distances."""

ALEXNET = StraightNetwork(
    (
        Layer(64, 11, pool=3, stride=4, padding=2),
        Layer(192, 5, pool=3, padding=2),
        Layer(384),
        Layer(256),
        Layer(256, pool=3),
    ),
    hidden=(4096, 4096),
    side=6,
)
"""Krizhevsky 2014 ("one weird trick"), as in torchvision; the network of 2012 has 96, 256, 384, 384 and 256
maps in two groups, with local response normalisation."""


def _small(layers: int, shortcut: Shortcut) -> ResidualNetwork:
    """For images of 32 pixels: 6n + 2 layers in three stages (4.2)."""
    n = (layers - 2) // 6
    return ResidualNetwork(basic, (n, n, n), (16, 32, 64), shortcut, first=16, pooled=False)


def _basic(depths: tuple[int, ...], shortcut: Shortcut = "projection") -> ResidualNetwork:
    return ResidualNetwork(basic, depths, (64, 128, 256, 512), shortcut, first=64)


def _bottleneck(depths: tuple[int, ...]) -> ResidualNetwork:
    return ResidualNetwork(bottleneck, depths, (256, 512, 1024, 2048), "projection", first=64)


NETWORKS: dict[str, ResidualNetwork | StraightNetwork] = {
    "lenet-5": LENET,
    "alexnet": ALEXNET,
    "vgg-11": _vgg(1, 1, 2, 2, 2),
    "vgg-13": _vgg(2, 2, 2, 2, 2),
    "vgg-16": _vgg(2, 2, 3, 3, 3),
    "vgg-19": _vgg(2, 2, 4, 4, 4),
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
    """The named network without its classifier, for images of `channels`; ConfigError for an unknown name."""
    if network not in NETWORKS:
        raise ConfigError(f"model.encoder.network: unknown network '{network}'{nearest(network, NETWORKS)}")
    return NETWORKS[network].encoder(channels, stem)


def image_head(network: str, encoder: ImageEncoder, size: int, classes: int, dropout: float) -> nn.Module:
    """The named network's classifier behind its `encoder`, for images of `size` by `size` pixels.

    ConfigError if they are too small for the network.
    """
    try:
        return NETWORKS[network].head(encoder, size, classes, dropout)
    except RuntimeError:  # torch's, of a convolution or pooling that is larger than what it reads
        raise ConfigError(
            f"images of {size}x{size} are too small for model.encoder.network={network}: "
            "raise data.image.size, or choose one for small images, as resnet-20"
        ) from None
