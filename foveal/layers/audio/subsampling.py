"""Strided convolutions over time, which keep a quarter of the steps."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.ops.gelu import gelu
from foveal.ops.padding import zero_padding
from foveal.ops.strided_convolution import strided_convolution


class _StridedConv1d(nn.Conv1d):
    """torch's convolution, also right in bfloat16 where the input is shorter than the stride."""

    def forward(self, x: Float[Tensor, "B C T"]) -> Float[Tensor, "B D S"]:
        return strided_convolution(self, x)


class ConvSubsampling(nn.Module):
    """Two convolutions, each `y_t = gelu(b + sum_j W_j x_(2t + j))` with j = -1, 0, 1 and ceil(T / 2)
    outputs.

    Radford et al. 2022 (2.2) use the same, but their first convolution has stride 1. The input is padded with
    zeros before the first step and after the last. Weights start normal with variance 2 / (3 D), for a
    rectifier (He et al. 2015), which keeps the scale of the vectors. Biases start at zero.

    Example:

        >>> y, lengths = layers.ConvSubsampling(80, 16)(torch.randn(2, 12, 80), torch.tensor([12, 7]))
        >>> tuple(y.shape), lengths.tolist()
        ((2, 3, 16), [3, 2])
    """

    def __init__(self, d_in: int, width: int):
        super().__init__()
        self.first = _StridedConv1d(d_in, width, kernel_size=3, stride=2, padding=1)
        self.second = _StridedConv1d(width, width, kernel_size=3, stride=2, padding=1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for convolution in (self.first, self.second):
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B S E"], Int[Tensor, " B"] | None]:
        """Return the outputs, zeros in the padding, and their lengths."""
        x = zero_padding(x, lengths)
        for convolution in (self.first, self.second):
            lengths = None if lengths is None else (lengths + 1) // 2
            x = zero_padding(gelu(convolution(x.mT)).mT, lengths)
        return x, lengths
