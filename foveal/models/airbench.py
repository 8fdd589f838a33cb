"""A network of seven convolutions that learns small images in few epochs: airbench.

(Jordan 2024, "94 % on CIFAR-10 in 3.29 seconds on a single GPU", section 3, after Page 2019.)
"""

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
    """A convolution that starts as the identity on its input channels. Additional filters start as torch's
    (3.3)."""

    def reset_parameters(self) -> None:
        nn.Conv2d.reset_parameters(self)
        nn.init.dirac_(self.weight[: self.in_channels])


class ScaledMaxPoolHead(ClassificationHead):
    """The maximum of each channel, with logits divided by 9 (3.1).

    Maxima are large. Without the division, the initial logits and all gradients would be large too.
    """

    def __init__(self, width: int, classes: int, dropout: float = 0.0):
        super().__init__(width, classes, "max", dropout)

    def project(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        return super().project(features) / 9


@dataclass(frozen=True)
class AirbenchNetwork:
    """Whitened patches of 2x2, then for each of `widths` a convolution, 2x2 pooling and another convolution.

    With `residual`, the pooling is followed by two convolutions with a shortcut instead. Norms have gains, as
    torch's; the published norms have only biases.
    """

    widths: tuple[int, ...]
    residual: bool = False

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        first = WhiteningConv2d(channels, 2)
        blocks, d_in = [first, ActivationLayer("gelu")], first.out_channels
        for width in self.widths:
            downsampling = (
                IdentityConv2d(d_in, width, 3),
                nn.MaxPool2d(2, stride=2),
                BatchNorm2d(width),
                ActivationLayer("gelu"),
            )
            body: nn.Module = ConvNormAct(width, width, 3, activation=gelu, convolution=IdentityConv2d)
            if self.residual:
                last = ConvNormAct(width, width, 3, activation=None, convolution=IdentityConv2d)
                body = ResidualBlock(nn.Sequential(body, last), width, width, 1, "padded", gelu)
            blocks.append(nn.Sequential(*downsampling, body))
            d_in = width
        return ImageEncoder(blocks, d_in)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return ScaledMaxPoolHead(width, classes, dropout)


PROXY_NETWORK = AirbenchNetwork((32, 64, 64))
"""A small network that learns beside another and finds hard images (airbench96's "proxy")."""
