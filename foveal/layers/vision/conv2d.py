"""2D convolution and batch normalization: torch's, initialized for image networks."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.runtime import at_least_float32
from foveal.core.whole_batch import Slot, current_slot, gather_slots
from foveal.ops.strided_convolution import strided_convolution
from foveal.ops.vision.winograd import conv2d_3x3


class Conv2d(nn.Conv2d):
    """torch's convolution. By default the padding keeps the size at stride 1, and there is no bias.

    Weights start normal with variance 2 / n, for a rectifier (He et al. 2015b). Without a bias, n is the
    fan-out (equation 14): a norm after the convolution sets the scale of the outputs anyway. With a bias, and
    so without a norm, n is the fan-in (equation 10), which keeps the scale. Biases start at zero.

    Example:

        >>> tuple(layers.Conv2d(3, 16, 3, stride=2)(torch.randn(2, 3, 32, 32)).shape)
        (2, 16, 16, 16)
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        kernel: int,
        stride: int = 1,
        padding: int | None = None,
        bias: bool = False,
        groups: int = 1,
    ):
        padding = kernel // 2 if padding is None else padding
        super().__init__(d_in, d_out, kernel, stride, padding, bias=bias, groups=groups)
        self.is_3x3 = (kernel, stride, groups) == (3, 1, 1)

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        if not self.is_3x3:
            return strided_convolution(self, x)
        return conv2d_3x3(x, self.weight, self.bias, int(self.padding[0]))

    def reset_parameters(self) -> None:
        channels = self.out_channels if self.bias is None else self.in_channels
        fan = channels // self.groups * self.weight[0, 0].numel()
        nn.init.normal_(self.weight, std=math.sqrt(2 / fan))
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class Conv2dSame(Conv2d):
    """A convolution with TensorFlow's "SAME" padding: if the number of zeros is odd, the extra zero is at the
    end.

    At stride 2 on an even side, the windows therefore begin one pixel later than with equal padding on both
    sides.

    Example:

        >>> tuple(layers.Conv2dSame(3, 16, 3, stride=2)(torch.randn(2, 3, 33, 32)).shape)
        (2, 16, 17, 16)
    """

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        padding: list[int] = []
        for side, kernel, stride in zip(x.shape[:1:-1], self.kernel_size, self.stride, strict=True):
            count = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            padding += [count // 2, count - count // 2]
        return F.conv2d(F.pad(x, padding), self.weight, self.bias, self.stride, groups=self.groups)


class BatchNorm2d(nn.BatchNorm2d):
    """torch's batch norm (Ioffe and Szegedy 2015), which in two cases uses the running statistics in training
    too.

    In these cases the running statistics do not change. In the first case, the gain is frozen. In the second
    case, each channel has a single value, which has no variance. This happens if the last batch of an epoch
    is a single image whose feature map has shrunk to one position.

    Example:

        >>> tuple(layers.BatchNorm2d(16)(torch.randn(1, 16, 1, 1)).shape)  # torch's refuses a single value
        (1, 16, 1, 1)
    """

    keeps_statistics = True
    reads_whole_batch = True

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        slot = current_slot()
        if slot is not None and self.training and self.weight.requires_grad:
            return self._over_slots(x, slot)
        if self.training and (x.numel() == x.shape[1] or not self.weight.requires_grad):
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)

    def _over_slots(self, x: Float[Tensor, "B C h w"], slot: Slot) -> Float[Tensor, "B C h w"]:
        """Normalize by the mean and the variance of all slots (Chan et al. 1979, equation 2.1)."""
        values = at_least_float32(x)
        count = values.new_tensor([values.numel() // values.shape[1]])
        mean = values.sum((0, 2, 3)) / count.clamp(min=1)
        squares = (values - mean[:, None, None]).square().sum((0, 2, 3))
        everyone = gather_slots(torch.cat([count, mean, squares]))
        counts, (means, sums) = everyone[:, :1], everyone[:, 1:].chunk(2, 1)
        total = counts.sum()
        if total == 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        mean = (counts * means).sum(0) / total
        squares = (sums + counts * (means - mean).square()).sum(0)
        if slot.keeps_statistics:
            self._update_statistics(mean.detach(), squares.detach() / (total - 1))
        scale = self.weight * (squares / total + self.eps).rsqrt()
        normalized = (values - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]
        return normalized.to(x.dtype)

    def _update_statistics(self, mean: Float[Tensor, " C"], variance: Float[Tensor, " C"]) -> None:
        """Move the running statistics toward those of a batch."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        momentum = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


class ConvNormAct(nn.Module):
    """`activation(norm(W * x))` with a convolution without bias. None means no activation.

    Example:

        >>> tuple(layers.ConvNormAct(3, 16, 3, stride=2)(torch.randn(2, 3, 32, 32)).shape)
        (2, 16, 16, 16)
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        kernel: int,
        stride: int = 1,
        activation: Callable[[Tensor], Tensor] | None = F.relu,
        groups: int = 1,
        convolution: type[Conv2d] = Conv2d,
        epsilon: float = 1e-5,
    ):
        super().__init__()
        self.convolution = convolution(d_in, d_out, kernel, stride, groups=groups)
        self.norm = BatchNorm2d(d_out, epsilon)
        self.activation = activation

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        x = self.norm(self.convolution(x))
        return x if self.activation is None else self.activation(x)
