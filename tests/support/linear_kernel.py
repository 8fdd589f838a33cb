"""A product by the kernel of a linear layer."""

import torch
from torch import Tensor

from foveal.ops.jit.launch import Kernel


def kernel_product(x: Tensor, W: Tensor) -> Tensor:
    """Return `x @ W.T`, computed by the kernel in a few tasks."""
    kernel = Kernel("linear", "forward")
    assert kernel.usable(x, W)
    y = torch.full((x.shape[0], W.shape[0]), torch.nan)
    kernel(5, x, W, W, y, x.shape[0], x.shape[1], W.shape[0], 0)
    return y
