"""1D convolution, batch normalization and pooling over the steps of padded series.

`x` is (B, C, T). `mask` is (B, 1, T), True at the steps of each series, or None if there is no padding. What
stands in the padding has no influence: it counts as zero in a convolution, as with a series of its own, and
not at all in the statistics of a norm or in the maximum of a pooling.
"""

import math
from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

StepMask = Bool[Tensor, "B 1 T"] | None


def zero_padded_steps(x: Float[Tensor, "B C T"], mask: StepMask) -> Float[Tensor, "B C T"]:
    """Return `x` with zeros where `mask` is False."""
    return x if mask is None else x.where(mask, x.new_zeros(()))


class Conv1d(nn.Conv1d):
    """A convolution that keeps the number of steps, without a bias, since a norm follows.

    If the number of zeros around a series is odd (an even kernel, no dilation), the extra zero is at the end,
    as in the published networks. Weights start normal with variance 2 / fan-out, for a rectifier (He et al.
    2015b, equation 14).
    """

    def __init__(self, d_in: int, d_out: int, kernel: int, dilation: int = 1):
        super().__init__(d_in, d_out, kernel, dilation=dilation, bias=False)
        zeros = dilation * (kernel - 1)
        self.zeros = (zeros // 2, zeros - zeros // 2)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=math.sqrt(2 / (self.out_channels * self.kernel_size[0])))

    def forward(self, x: Float[Tensor, "B C T"], mask: StepMask = None) -> Float[Tensor, "B D T"]:
        return super().forward(F.pad(zero_padded_steps(x, mask), self.zeros))


class BatchNorm1d(nn.BatchNorm1d):
    """Batch norm (Ioffe and Szegedy 2015) over all steps of all series of a batch, without the padding.

    In training too, the running statistics are used and do not change if the gain is frozen, or if the batch
    has only a single step, which has no variance.
    """

    keeps_statistics = True

    def forward(self, x: Float[Tensor, "B C T"], mask: StepMask = None) -> Float[Tensor, "B C T"]:
        if mask is None or not self.training:
            return self._normalize(x)
        steps = x.mT[mask[:, 0]]
        return x.new_zeros(x.mT.shape).masked_scatter(mask.mT, self._normalize(steps)).mT

    def _normalize(self, x: Tensor) -> Tensor:
        """Normalize the channels (axis 1) of `x`."""
        if self.training and (x.numel() <= x.shape[1] or not self.weight.requires_grad):
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


class ConvNormAct1d(nn.Module):
    """`activation(norm(W * x))`. None means no activation."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        kernel: int,
        activation: Callable[[Tensor], Tensor] | None = F.relu,
    ):
        super().__init__()
        self.convolution = Conv1d(d_in, d_out, kernel)
        self.norm = BatchNorm1d(d_out)
        self.activation = activation

    def forward(self, x: Float[Tensor, "B C T"], mask: StepMask = None) -> Float[Tensor, "B D T"]:
        x = self.norm(self.convolution(x, mask), mask)
        return x if self.activation is None else self.activation(x)


def max_pool_steps(x: Float[Tensor, "B C T"], mask: StepMask) -> Float[Tensor, "B C T"]:
    """Return the largest of each step and its two neighbors, of those that the series has."""
    if mask is not None:
        x = x.masked_fill(~mask, -math.inf)
    return F.max_pool1d(x, 3, stride=1, padding=1)
