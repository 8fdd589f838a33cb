"""The block of ConvNeXt, and its norm over the channels of a grid (Liu et al. 2022)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.layers.blocks.feedforward import MLP
from foveal.layers.norm import LayerNorm
from foveal.layers.vision.conv2d import Conv2d


class LayerNorm2d(LayerNorm):
    """Layer norm over the channels of each position.

    Example:

        >>> tuple(layers.LayerNorm2d(16)(torch.randn(2, 16, 8, 8)).shape)
        (2, 16, 8, 8)
    """

    def __init__(self, width: int):
        super().__init__(width, epsilon=1e-6)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        return super().forward(x.movedim(1, 3)).movedim(3, 1)


class ConvNeXtBlock(nn.Module):
    """`y = x + scale * MLP(norm(filter(x)))` with a 7x7 depthwise convolution `filter` (Liu et al. 2022,
    figure 4).

    The MLP has four times the width, and GELU. The scale, a number per channel, starts at 1e-6, so a block is
    nearly the identity at first.

    Example:

        >>> tuple(layers.ConvNeXtBlock(16)(torch.randn(2, 16, 8, 8)).shape)
        (2, 16, 8, 8)
    """

    def __init__(self, width: int):
        super().__init__()
        self.filter = Conv2d(width, width, 7, bias=True, groups=width)
        self.norm = LayerNorm2d(width)
        self.mlp = MLP(width, 4 * width)
        self.scale = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.scale, 1e-6)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        y = self.norm(self.filter(x)).movedim(1, 3)
        return x + (self.scale * self.mlp(y)).movedim(3, 1)
