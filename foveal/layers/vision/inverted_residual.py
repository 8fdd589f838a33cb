"""Inverted residual blocks: narrow between blocks, wide inside (Sandler et al. 2018)."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.vision.conv2d import Conv2dSame, ConvNormAct


def tf_conv_norm_act(
    d_in: int,
    d_out: int,
    kernel: int,
    stride: int = 1,
    activation: Callable[[Tensor], Tensor] | None = F.relu6,
    groups: int = 1,
) -> ConvNormAct:
    """Return a `ConvNormAct` with TensorFlow's padding and epsilon 1e-3, as these networks were published."""
    return ConvNormAct(d_in, d_out, kernel, stride, activation, groups, Conv2dSame, 1e-3)


class InvertedResidual(nn.Module):
    """A 1x1 convolution to `expansion` times the channels, a depthwise convolution, and a 1x1 convolution
    back.

    See table 1 and figure 3 of the paper. The last convolution has no activation. The input is added if the
    shapes are equal.

    Example:

        >>> block = layers.InvertedResidual(16, 24, kernel=3, stride=2, expansion=6)
        >>> tuple(block(torch.randn(2, 16, 32, 32)).shape)
        (2, 24, 16, 16)
    """

    def __init__(self, d_in: int, d_out: int, kernel: int, stride: int, expansion: int):
        super().__init__()
        wide = expansion * d_in
        widening = [tf_conv_norm_act(d_in, wide, 1)] if expansion > 1 else []
        self.body = nn.Sequential(
            *widening,
            tf_conv_norm_act(wide, wide, kernel, stride, groups=wide),
            tf_conv_norm_act(wide, d_out, 1, activation=None),
        )
        self.shortcut = stride == 1 and d_in == d_out

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        y = self.body(x)
        return x + y if self.shortcut else y
