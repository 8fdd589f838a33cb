"""Residual blocks over a grid (He, Zhang, Ren and Sun 2015), and the same without shortcuts."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.vision.conv2d import ConvNormAct
from foveal.ops.activation import ActivationFunction

Shortcut = Literal["projection", "padded", "none"]


class ResidualBlock(nn.Module):
    """`y = phi(body(x) + shortcut(x))` (eq. 1 and 2), or `y = phi(body(x))` without one, a plain network's.

    `phi` is the `activation`, a rectifier as published. The shortcut is the identity where the shapes are
    equal; else `projection`, a convolution of one place with a norm (option B), or `padded`, every
    `stride`-th place with zeros as the new channels (option A).
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
    """Every `stride`-th place, and `more` channels of zeros behind those there are."""

    def __init__(self, more: int, stride: int):
        super().__init__()
        self.more, self.stride = more, stride

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))


def basic_block(d_in: int, d_out: int, stride: int, activation: ActivationFunction = F.relu) -> nn.Module:
    """Two convolutions of 3x3."""
    return nn.Sequential(
        ConvNormAct(d_in, d_out, 3, stride, activation), ConvNormAct(d_out, d_out, 3, activation=None)
    )


def bottleneck_block(
    d_in: int, d_out: int, stride: int, activation: ActivationFunction = F.relu
) -> nn.Module:
    """1x1 to a quarter of the channels, 3x3, and 1x1 back.

    The stride is the 3x3's, as in torchvision and Hugging Face ("v1.5"); in the paper it is the first 1x1's,
    which skips three places of four.
    """
    inner = d_out // 4
    return nn.Sequential(
        ConvNormAct(d_in, inner, 1, activation=activation),
        ConvNormAct(inner, inner, 3, stride, activation),
        ConvNormAct(inner, d_out, 1, activation=None),
    )
