"""Convolutions with a stride, of inputs that may be shorter than the stride."""

from torch import Tensor, nn
from torch.nn import functional as F


def strided_convolution(layer: nn.Conv1d | nn.Conv2d, x: Tensor) -> Tensor:
    """Return the outputs of a convolution with zeros as padding, (B, C, ...) to (B, D, ...).

    In bfloat16, oneDNN leaves gradients of the weights unwritten where a side of the input is shorter than
    the stride and the convolution adds the padding (torch 2.13). The padding of such inputs is added before.
    """
    if all(side >= stride for side, stride in zip(x.shape[2:], layer.stride, strict=True)):
        return layer._conv_forward(x, layer.weight, layer.bias)
    assert not isinstance(layer.padding, str)
    padding = [count for count in reversed(layer.padding) for _ in range(2)]
    convolve = F.conv1d if isinstance(layer, nn.Conv1d) else F.conv2d
    return convolve(F.pad(x, padding), layer.weight, layer.bias, layer.stride, groups=layer.groups)
