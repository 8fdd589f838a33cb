"""Blocks of 1D convolutions over the steps of series: residual blocks, and inception modules.

Shapes are those of `foveal.layers.series.conv1d`.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.series.conv1d import (
    SeriesConv,
    SeriesConvNormAct,
    SeriesNorm,
    StepMask,
    max_pool_steps,
)


class ResidualSeriesBlock(nn.Module):
    """`relu(body(x) + shortcut(x))`, with a body of any number of layers (Wang, Yan and Oates 2017).

    Example:

        >>> body = [layers.SeriesConvNormAct(6, 16, 7), layers.SeriesConvNormAct(16, 16, 3, None)]
        >>> block = layers.ResidualSeriesBlock(body, layers.SeriesConvNormAct(6, 16, 1, None))
        >>> tuple(block(torch.randn(2, 6, 1, 50)).shape)
        (2, 16, 1, 50)
    """

    def __init__(self, body: Sequence[nn.Module], shortcut: nn.Module):
        super().__init__()
        self.body = nn.ModuleList(body)
        self.shortcut = shortcut

    def forward(self, x: Float[Tensor, "B C 1 T"], mask: StepMask = None) -> Float[Tensor, "B D 1 T"]:
        y = x
        for layer in self.body:
            y = layer(y, mask)
        return F.relu(y + self.shortcut(x, mask))


def convolution_body(d_in: int, d_out: int, kernels: Sequence[int]) -> list[nn.Module]:
    """Return convolutions with `kernels` in sequence, the last without an activation."""
    widths, last = [d_in, *[d_out] * len(kernels)], len(kernels) - 1
    return [
        SeriesConvNormAct(widths[place], d_out, kernel, None if place == last else F.relu)
        for place, kernel in enumerate(kernels)
    ]


class InceptionModule(nn.Module):
    """`relu(norm([W_1 * b; W_2 * b; ...; W_0 pool(x)]))` with `b = W_b x` (Ismail Fawaz et al. 2020).

    Figure 2 of the paper. The convolutions `W_i` have the `kernels`. They read a bottleneck `b` of
    `bottleneck` channels, or `x` itself if `x` has a single channel. `pool` is the maximum of three steps.
    Each branch has `width` channels.

    Example:

        >>> module = layers.InceptionModule(6, width=8, bottleneck=8, kernels=(40, 20, 10))
        >>> tuple(module(torch.randn(2, 6, 1, 50)).shape)
        (2, 32, 1, 50)
    """

    def __init__(self, d_in: int, width: int, bottleneck: int, kernels: Sequence[int]):
        super().__init__()
        self.bottleneck = SeriesConv(d_in, bottleneck, 1) if d_in > 1 else None
        inner = bottleneck if d_in > 1 else d_in
        self.convolutions = nn.ModuleList(SeriesConv(inner, width, kernel) for kernel in kernels)
        self.pooled = SeriesConv(d_in, width, 1)
        self.d_out = width * (len(kernels) + 1)
        self.norm = SeriesNorm(self.d_out)

    def forward(self, x: Float[Tensor, "B C 1 T"], mask: StepMask = None) -> Float[Tensor, "B D 1 T"]:
        b = x if self.bottleneck is None else self.bottleneck(x, mask)
        branches = [convolution(b, mask) for convolution in self.convolutions]
        branches.append(self.pooled(max_pool_steps(x, mask), mask))
        return F.relu(self.norm(torch.cat(branches, 1), mask))
