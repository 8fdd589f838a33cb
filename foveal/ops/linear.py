"""`y = W x + b`, and a path for a few vectors, where reading the weights is all there is to do."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.dispatch import choose
from foveal.ops.team import Kernel

FEW = 8
"""Up to so many vectors the kernel beats torch's product, which reads at half the memory's speed."""
SHARE = 1 << 17
"""Weights that are worth a task of their own: 512 KiB, read in about the time it takes to wake a thread."""

_forward = Kernel("linear", "forward")


def linear(
    x: Float[Tensor, "*B K"], weight: Float[Tensor, "M K"], bias: Float[Tensor, " M"] | None = None
) -> Float[Tensor, "*B M"]:
    """`x W^T + bias`."""
    few = x.numel() <= FEW * x.shape[-1] and not torch.is_grad_enabled()
    if few and choose("linear", "few", _forward.usable(x, weight)):
        return _few(x, weight, bias)
    return F.linear(x, weight, bias)


def _few(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    x, weight = x.contiguous(), weight.contiguous()
    M, K = weight.shape
    y = x.new_empty(*x.shape[:-1], M)
    tasks = min(64, max(1, M * K // SHARE))
    given = weight if bias is None else bias
    _forward(tasks, x, weight, given, y, x.numel() // K, K, M, int(bias is not None))
    return y
