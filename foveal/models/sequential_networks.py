"""Networks of layers one after the other: LeNet-5, AlexNet, VGG; and those without a convolution."""

from dataclasses import dataclass

from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.flatten_classification import FlattenClassificationHead
from foveal.layers.activation import ActivationLayer
from foveal.layers.vision.conv2d import Conv2d
from foveal.ops.activation import ACTIVATIONS, Activation


@dataclass(frozen=True)
class ConvLayer:
    """A convolution, its activation, and pooling at stride 2 over squares of side `pool`, unless it is 0."""

    width: int
    kernel: int = 3
    pool: int = 0
    stride: int = 1
    padding: int = 1


@dataclass(frozen=True)
class SequentialNetwork:
    """Convolutions with biases, one after the other, then hidden layers that see all places of the grid.

    As published, those stand behind a grid of `side` by `side`, to which a larger one is averaged
    (torchvision); for images so small that the grid is smaller, they see that one.
    """

    layers: tuple[ConvLayer, ...]
    hidden: tuple[int, ...]
    side: int
    activation: Activation = "relu"
    pooling: type[nn.Module] = nn.MaxPool2d

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
    """Five times some convolutions and pooling; 64 to 512 channels (Simonyan and Zisserman 2015, table 1)."""
    layers = [
        ConvLayer(width, pool=2 if layer == depth - 1 else 0)
        for depth, width in zip(stages, (64, 128, 256, 512, 512), strict=True)
        for layer in range(depth)
    ]
    return SequentialNetwork(tuple(layers), hidden=(4096, 4096), side=7)


WHOLE = 1 << 16
"""A side no image has: no grid is averaged."""
LINEAR_NETWORK = SequentialNetwork((), hidden=(), side=WHOLE)
"""`W x + b` of all pixels: a template for each class."""
MLP_NETWORK = SequentialNetwork((), hidden=(512,), side=WHOLE)
"""One hidden layer: `W_2 relu(W_1 x + b_1) + b_2`."""
DEEP_MLP_NETWORK = SequentialNetwork((), hidden=(2048,) * 9, side=WHOLE)
"""Ten layers, to see what first weights do: of deviation 0.01 they let nothing through, of 0.05 too much."""

LENET = SequentialNetwork(
    (ConvLayer(6, 5, pool=2, padding=0), ConvLayer(16, 5, pool=2, padding=0)),
    hidden=(120, 84),
    side=5,
    activation="tanh",
    pooling=nn.AvgPool2d,
)
"""LeCun et al. 1998, but all maps of the second layer see all of the first, averages have no weights of their
own, and classes have a projection instead of distances."""

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
"""Krizhevsky 2014 ("one weird trick"), as in torchvision; the network of 2012 has 96, 256, 384, 384 and 256
maps in two groups, with local response normalisation."""
