"""1D convolution, batch normalization and pooling over the steps of padded series.

`x` is (B, C, 1, T), an image with a single row, whose numbers lie in memory as (B, T, C): torch has no such
layout for (B, C, T), and takes up to 1.8 times as long on a CPU. `mask` is (B, 1, 1, T), True at the steps of
each series, or None if there is no padding. What stands in the padding has no influence: it counts as zero in
a convolution, as beyond the end of a series of its own, and not at all in the statistics of a norm or in the
maximum of a pooling.
"""

import math
from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.vision.conv2d import BatchNorm2d

StepMask = Bool[Tensor, "B 1 1 T"] | None


class SeriesConv(nn.Conv1d):
    """A convolution that keeps the number of steps, without a bias, since a norm follows.

    If the number of zeros around a series is odd (an even kernel), the extra zero is at the end, as in the
    published networks. Weights start normal with variance 2 / fan-out, for a rectifier (He et al. 2015b,
    equation 14).

    Example:

        >>> tuple(layers.SeriesConv(6, 16, kernel=8)(torch.randn(2, 6, 1, 50)).shape)
        (2, 16, 1, 50)
    """

    def __init__(self, d_in: int, d_out: int, kernel: int):
        super().__init__(d_in, d_out, kernel, bias=False)
        self.zeros = ((kernel - 1) // 2, kernel // 2)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=math.sqrt(2 / (self.out_channels * self.kernel_size[0])))

    def forward(self, x: Float[Tensor, "B C 1 T"], mask: StepMask = None) -> Float[Tensor, "B D 1 T"]:
        if mask is not None:
            x = x.where(mask, x.new_zeros(()))
        return F.conv2d(F.pad(x, self.zeros), self.weight[:, :, None])


class SeriesNorm(BatchNorm2d):
    """Batch norm (Ioffe and Szegedy 2015) over all steps of all series of a batch, without the padding.

    Example:

        >>> steps = torch.arange(50) < torch.tensor([[50], [30]])
        >>> tuple(layers.SeriesNorm(6)(torch.randn(2, 6, 1, 50), steps[:, None, None]).shape)
        (2, 6, 1, 50)
    """

    def forward(self, x: Float[Tensor, "B C 1 T"], mask: StepMask = None) -> Float[Tensor, "B C 1 T"]:
        if mask is None or not self.training:
            return super().forward(x)
        steps, present = x.movedim(1, 3), mask[:, 0]
        normed = super().forward(steps[present][:, :, None, None])[:, :, 0, 0]
        return steps.new_zeros(steps.shape).index_put((present,), normed.to(steps.dtype)).movedim(3, 1)


class SeriesConvNormAct(nn.Module):
    """`activation(norm(W * x))`. None means no activation.

    Example:

        >>> tuple(layers.SeriesConvNormAct(6, 16, kernel=8)(torch.randn(2, 6, 1, 50)).shape)
        (2, 16, 1, 50)
    """

    def __init__(
        self, d_in: int, d_out: int, kernel: int, activation: Callable[[Tensor], Tensor] | None = F.relu
    ):
        super().__init__()
        self.convolution = SeriesConv(d_in, d_out, kernel)
        self.norm = SeriesNorm(d_out)
        self.activation = activation

    def forward(self, x: Float[Tensor, "B C 1 T"], mask: StepMask = None) -> Float[Tensor, "B D 1 T"]:
        x = self.norm(self.convolution(x, mask), mask)
        return x if self.activation is None else self.activation(x)


def max_pool_steps(x: Float[Tensor, "B C 1 T"], mask: StepMask) -> Float[Tensor, "B C 1 T"]:
    """Return the largest of each step and its two neighbors, of those that the series has."""
    if mask is not None:
        x = x.masked_fill(~mask, -math.inf)
    return F.max_pool2d(x, (1, 3), stride=1, padding=(0, 1))
