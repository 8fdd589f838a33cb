"""Residual blocks over a grid (He, Zhang, Ren and Sun 2015), and the same blocks without shortcuts."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.vision.conv2d import ConvNormAct
from foveal.ops.activation import ActivationFunction

Shortcut = Literal["projection", "padded", "none"]


class ResidualBlock(nn.Module):
    """`y = phi(body(x) + shortcut(x))` (equations 1 and 2), or without a shortcut `y = phi(body(x))`.

    `phi` is the `activation`, as published a ReLU. The shortcut is the identity if the shapes are equal.
    Otherwise it is a `projection`, a 1x1 convolution with a norm (option B), or `padded`: every `stride`-th
    position, with zeros as the new channels (option A).

    Example:

        >>> conv = layers.ConvNormAct
        >>> body = torch.nn.Sequential(conv(16, 32, 3, stride=2), conv(32, 32, 3, activation=None))
        >>> block = layers.ResidualBlock(body, 16, 32, stride=2, shortcut="projection")
        >>> tuple(block(torch.randn(2, 16, 32, 32)).shape)
        (2, 32, 16, 16)
    """

    def __init__(
        self,
        body: nn.Module,
        d_in: int,
        d_out: int,
        stride: int,
        shortcut: Shortcut,
        activation: ActivationFunction = F.relu,
    ):
        super().__init__()
        self.body, self.activation = body, activation
        self.shortcut: nn.Module | None
        if shortcut == "none":
            self.shortcut = None
        elif stride == 1 and d_in == d_out:
            self.shortcut = nn.Identity()
        elif shortcut == "padded":
            self.shortcut = ZeroPaddedShortcut(d_out - d_in, stride)
        else:
            self.shortcut = ConvNormAct(d_in, d_out, 1, stride, activation=None)

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        y = self.body(x)
        return self.activation(y if self.shortcut is None else y + self.shortcut(x))


class ZeroPaddedShortcut(nn.Module):
    """Takes every `stride`-th position, and appends `extra_channels` channels of zeros.

    Example:

        >>> tuple(layers.ZeroPaddedShortcut(extra_channels=16, stride=2)(torch.randn(2, 16, 32, 32)).shape)
        (2, 32, 16, 16)
    """

    def __init__(self, extra_channels: int, stride: int):
        super().__init__()
        self.extra_channels, self.stride = extra_channels, stride

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra_channels))


def basic_block(d_in: int, d_out: int, stride: int, activation: ActivationFunction = F.relu) -> nn.Module:
    """Return two 3x3 convolutions."""
    return nn.Sequential(
        ConvNormAct(d_in, d_out, 3, stride, activation), ConvNormAct(d_out, d_out, 3, activation=None)
    )


def bottleneck_block(
    d_in: int, d_out: int, stride: int, activation: ActivationFunction = F.relu
) -> nn.Module:
    """Return a 1x1 convolution to a quarter of the channels, a 3x3 convolution, and a 1x1 convolution back.

    The 3x3 convolution has the stride, as in torchvision and Hugging Face ("v1.5"). In the paper the first
    1x1 convolution has the stride, which skips three of four positions.
    """
    inner = d_out // 4
    return nn.Sequential(
        ConvNormAct(d_in, inner, 1, activation=activation),
        ConvNormAct(inner, inner, 3, stride, activation),
        ConvNormAct(inner, d_out, 1, activation=None),
    )
