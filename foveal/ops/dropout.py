"""Dropout: in training, some elements are zeroed at random and the others are scaled up."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel

_kernel = Kernel("dropout", "forward")
PROBABILITY_STEPS = 1 << 24
"""The kernel's probability is a multiple of 1 / PROBABILITY_STEPS."""
NUMBERS_PER_TASK = 1 << 14
"""Elements in a task of the kernel."""


def dropout(x: Float[Tensor, "*B D"], p: float) -> Float[Tensor, "*B D"]:
    """Return `x m / (1 - p)` with m = 0 for a fraction `p` of the elements, else 1 (Srivastava et al. 2014).

    The kernel's noise is a function of the element's index and of one number from torch's generator. torch
    generates its noise on a single thread, which takes a tenth of a training step of small Transformers.
    """
    if not use_fast_path("dropout", "kernel", x.numel() % LANES == 0 and _kernel.usable(x)):
        return F.dropout(x, p)
    seed = int(torch.randint(1 << 62, ()))
    return _Dropout.apply(x.contiguous(), round(p * PROBABILITY_STEPS), seed)  # type: ignore[no-untyped-call]


def dropout_of_positions(
    x: Float[Tensor, "B t D"], p: float, length: int, positions: slice
) -> Float[Tensor, "B t D"]:
    """Return the given positions of `dropout` of a sequence (B, length, D), of which x are these positions.

    The noise is that of the whole sequence, and one byte an element is kept of it for the backward pass.
    """
    whole = dropout(x.new_ones(len(x), length, x.shape[2]), p)
    kept = whole[:, positions] != 0
    return (x / (1 - p)).where(kept, 0.0)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int, seed: int) -> Tensor:
        ctx.dropped, ctx.seed = dropped, seed
        return _apply_dropout(x, dropped, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        return _apply_dropout(dy.contiguous(), ctx.dropped, ctx.seed), None, None


def _apply_dropout(x: Tensor, dropped: int, seed: int) -> Tensor:
    y = torch.empty_like(x)
    _kernel(max(1, x.numel() // NUMBERS_PER_TASK), x, y, x.numel() // LANES, seed, dropped, PROBABILITY_STEPS)
    return y
