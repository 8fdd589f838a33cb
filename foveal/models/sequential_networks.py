"""Networks that are a sequence of layers: LeNet-5, AlexNet, VGG, and networks without convolutions."""

from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.flatten_classification import FlattenClassificationHead
from foveal.layers.activation import ActivationLayer
from foveal.layers.vision.conv2d import Conv2d
from foveal.ops.activation import ACTIVATIONS, Activation


@dataclass(frozen=True)
class ConvLayer:
    """A convolution and its activation, then pooling at stride 2 over squares of side `pool`, unless `pool`
    is 0."""

    width: int
    kernel: int = 3
    pool: int = 0
    stride: int = 1
    padding: int = 1


@dataclass(frozen=True)
class SequentialNetwork:
    """A sequence of convolutions with biases, then hidden layers that read all positions of the grid.

    As published, the hidden layers read a grid of `side` by `side`. A larger grid is averaged to this size,
    as in torchvision. If small images give a smaller grid, the hidden layers are made for that grid.
    """

    layers: tuple[ConvLayer, ...]
    hidden: tuple[int, ...]
    side: int
    activation: Activation = "relu"
    pooling: type[nn.Module] = nn.MaxPool2d

    @property
    def depth(self) -> int:
        """Return the number of layers with weights."""
        return len(self.layers) + len(self.hidden) + 1

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        layers = list(self.layers)
        if small and layers and layers[0].stride > 1:
            layers[0] = ConvLayer(layers[0].width)
        blocks, d_in = [], channels
        for layer in layers:
            convolution = Conv2d(d_in, layer.width, layer.kernel, layer.stride, layer.padding, bias=True)
            pool = [self.pooling(layer.pool, stride=2)] if layer.pool else []
            blocks.append(nn.Sequential(convolution, ActivationLayer(self.activation), *pool))
            d_in = layer.width
        return ImageEncoder(blocks, d_in)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        h, w = (min(self.side, side) for side in grid)
        return FlattenClassificationHead(
            width, (h, w), self.hidden, classes, dropout, ACTIVATIONS[self.activation]
        )


def vgg(*stages: int) -> SequentialNetwork:
    """Return the layers of VGG: five stages of convolutions and pooling, with 64 to 512 channels.

    (Simonyan and Zisserman 2015, table 1.)
    """
    layers = [
        ConvLayer(width, pool=2 if layer == depth - 1 else 0)
        for depth, width in zip(stages, (64, 128, 256, 512, 512), strict=True)
        for layer in range(depth)
    ]
    return SequentialNetwork(tuple(layers), hidden=(4096, 4096), side=7)


UNLIMITED_SIDE = 1 << 16
"""A side larger than any image's: no grid is averaged."""
LINEAR_NETWORK = SequentialNetwork((), hidden=(), side=UNLIMITED_SIDE)
"""`W x + b` of all pixels: a template for each class."""
MLP_NETWORK = SequentialNetwork((), hidden=(512,), side=UNLIMITED_SIDE)
"""One hidden layer: `W_2 relu(W_1 x + b_1) + b_2`."""
DEEP_MLP_NETWORK = SequentialNetwork((), hidden=(2048,) * 9, side=UNLIMITED_SIDE)
"""Ten layers, to study initialization: with standard deviation 0.01 the signal vanishes, with 0.05 it
explodes."""

LENET = SequentialNetwork(
    (ConvLayer(6, 5, pool=2, padding=0), ConvLayer(16, 5, pool=2, padding=0)),
    hidden=(120, 84),
    side=5,
    activation="tanh",
    pooling=nn.AvgPool2d,
)
"""LeCun et al. 1998, with three differences. All maps of the second layer read all maps of the first,
averages have no weights, and classes have a projection instead of distances."""

ALEXNET = SequentialNetwork(
    (
        ConvLayer(64, 11, pool=3, stride=4, padding=2),
        ConvLayer(192, 5, pool=3, padding=2),
        ConvLayer(384),
        ConvLayer(256),
        ConvLayer(256, pool=3),
    ),
    hidden=(4096, 4096),
    side=6,
)
"""Krizhevsky 2014 ("one weird trick"), as in torchvision. The network of 2012 has 96, 256, 384, 384 and 256
maps in two groups, with local response normalization."""
