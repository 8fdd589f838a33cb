"""A network of seven convolutions that learns small images in few epochs (Jordan 2024, "94 % on CIFAR-10 in
3.29 seconds on a single GPU", section 3; it comes of Page 2019)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from foveal.encoders.image import ImageEncoder
from foveal.heads.classification import ClassificationHead
from foveal.layers.activation import ActivationLayer
from foveal.layers.vision.conv2d import BatchNorm2d, Conv2d, ConvNormAct
from foveal.layers.vision.residual import ResidualBlock
from foveal.layers.vision.whitening import WhiteningConv2d
from foveal.ops.gelu import gelu


class IdentityConv2d(Conv2d):
    """Starts as the identity on the channels that come in; what it adds is drawn as torch does (3.3)."""

    def reset_parameters(self) -> None:
        nn.Conv2d.reset_parameters(self)
        nn.init.dirac_(self.weight[: self.in_channels])


class ScaledMaxPoolHead(ClassificationHead):
    """The maximum of each channel, and a ninth of what is projected (3.1): maxima are large, and so would the
    first logits be, and the steps of all."""

    def __init__(self, width: int, classes: int, dropout: float = 0.0):
        super().__init__(width, classes, "max", dropout)

    def project(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        return super().project(features) / 9


@dataclass(frozen=True)
class AirbenchNetwork:
    """Whitened patches of 2x2, and for each of `widths` a convolution, pooling over 2x2 and another
    convolution; or, `residual`, two others with a shortcut.

    Norms have gains, as torch's; the published ones have only biases.
    """

    widths: tuple[int, ...]
    residual: bool = False

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        first = WhiteningConv2d(channels, 2)
        blocks, d_in = [first, ActivationLayer("gelu")], first.out_channels
        for width in self.widths:
            halved = (
                IdentityConv2d(d_in, width, 3),
                nn.MaxPool2d(2, stride=2),
                BatchNorm2d(width),
                ActivationLayer("gelu"),
            )
            again: nn.Module = ConvNormAct(width, width, 3, activation=gelu, convolution=IdentityConv2d)
            if self.residual:
                last = ConvNormAct(width, width, 3, activation=None, convolution=IdentityConv2d)
                again = ResidualBlock(nn.Sequential(again, last), width, width, 1, "padded", gelu)
            blocks.append(nn.Sequential(*halved, again))
            d_in = width
        return ImageEncoder(blocks, d_in)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return ScaledMaxPoolHead(width, classes, dropout)


PROXY_NETWORK = AirbenchNetwork((32, 64, 64))
"""A small one that learns beside another and says which images are hard (airbench96's "proxy")."""
