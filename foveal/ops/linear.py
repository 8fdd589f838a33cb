"""`y = W x + b`, with a fast path for few vectors, where reading the weights takes nearly all the time."""

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel

MAX_KERNEL_VECTORS = 8
"""Maximum number of vectors for which the kernel beats torch's product where that reads at half the memory's
speed.

Torch's product of few vectors is MKL's, which is optimized for Intel's processors. Torch's time over the
kernel's, two threads, large weights from memory:

| vectors, matrix | AMD EPYC | Intel Xeon (AVX-512) |
|---|---|---|
| 1, 768 x 768 | 2.4 | 0.8 |
| 1, 768 x 3072 | 1.6 | 0.9 |
| 4, 768 x 3072 | | 1.15 |
| 8, 768 x 3072 | | 1.3 |
| 8, 256 x 256 | | 0.5 |

So on Intel's processors the kernel is used for several vectors and large matrices only.
"""
MIN_INTEL_VECTORS, LARGE_WEIGHT = 4, 1 << 20
WEIGHTS_PER_TASK = 1 << 17
"""Weights that justify a task of their own: 512 KiB, which takes about as long to read as to wake a thread.
"""

_forward = Kernel("linear", "forward")


def linear(
    x: Float[Tensor, "*B K"], weight: Float[Tensor, "M K"], bias: Float[Tensor, " M"] | None = None
) -> Float[Tensor, "*B M"]:
    """Return `x W^T + bias`."""
    fits = x.shape[-1] == weight.shape[1]  # else torch raises the error
    few_vectors = x.numel() <= MAX_KERNEL_VECTORS * x.shape[-1] and not torch.is_grad_enabled()
    if (
        fits
        and few_vectors
        and _kernel_is_faster(x, weight)
        and use_fast_path("linear", "few_vectors", _forward.usable(x, weight))
    ):
        return _few_vectors(x, weight, bias)
    return F.linear(x, weight, bias)


def _kernel_is_faster(x: Tensor, weight: Tensor) -> bool:
    return not _is_intel() or (
        x.numel() >= MIN_INTEL_VECTORS * x.shape[-1] and weight.numel() >= LARGE_WEIGHT
    )


@cache
def _is_intel() -> bool:
    return "Intel" in str(torch.cpu.get_capabilities().get("cpu_name", ""))


def _few_vectors(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    x, weight = x.contiguous(), weight.contiguous()
    M, K = weight.shape
    y = x.new_empty(*x.shape[:-1], M)
    tasks = min(64, max(1, M * K // WEIGHTS_PER_TASK))
    bias_argument = weight if bias is None else bias
    _forward(tasks, x, weight, bias_argument, y, x.numel() // K, K, M, int(bias is not None))
    return y
