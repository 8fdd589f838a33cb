"""Rotary position encoding: pairs of elements in queries and keys are rotated by an angle that grows with the
position."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from foveal.core.runtime import exact_dtype
from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel

_kernel = Kernel("rotary", "forward")
NUMBERS_PER_TASK = 1 << 14
"""Elements in a task of the kernel."""


def apply_rotary(
    x: Float[Tensor, "B T H K"], positions: Int[Tensor, "#B T"], base: float = 10_000.0
) -> Float[Tensor, "B T H K"]:
    """Apply `rotate_pairs` with the angles `t / base^(2i/K)` for pair i at position t (Su et al. 2021,
    equation 34, where the base is 10000).

    The product of a rotated query and a rotated key depends only on the distance of their positions.
    """
    half = x.shape[-1] // 2
    # In float64: for positions in the millions, the angles would be too inaccurate in float32.
    frequencies = base ** (-torch.arange(half, device=x.device, dtype=exact_dtype(x.device)) / half)
    angles = positions[:, :, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    if not use_fast_path(
        "rotary", "kernel", half % LANES == 0 and _is_row_contiguous(x) and _kernel.usable(x)
    ):
        return rotate_pairs(x, cos, sin)
    y: Tensor = _RotatePairs.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return y


def rotate_pairs(
    x: Float[Tensor, "B T H K"], cos: Float[Tensor, "#B T I"], sin: Float[Tensor, "#B T I"]
) -> Float[Tensor, "B T H K"]:
    """Return `(a cos - b sin, b cos + a sin)` for the halves (a, b) of each head, I = K / 2 pairs."""
    cos, sin = cos[:, :, None], sin[:, :, None]
    return torch.addcmul(x * torch.cat([cos, cos], -1), x.roll(cos.shape[-1], -1), torch.cat([-sin, sin], -1))


class _RotatePairs(torch.autograd.Function):
    """The kernel with its gradient, which is rotated by the negative angle."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotated_pairs(x, cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _rotated_pairs(dy if _is_row_contiguous(dy) else dy.contiguous(), cos, -sin), None, None


def _rotated_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    B, T, H, K = x.shape
    y = torch.empty(x.shape, dtype=x.dtype)
    tasks = max(1, x.numel() // NUMBERS_PER_TASK)
    _kernel(tasks, x.data_ptr(), y, cos, sin, B * T, H, K, _position_stride(x), len(cos) * T)
    return y


def _is_row_contiguous(x: Tensor) -> bool:
    """Return whether the heads of a position are adjacent in memory, and positions have a constant stride."""
    B, T, _, K = x.shape
    return x.stride()[2:] == (K, 1) and (B == 1 or T == 1 or x.stride(0) == T * x.stride(1))


def _position_stride(x: Tensor) -> int:
    """Return the stride from one position to the next."""
    return x.stride(1) if x.shape[1] > 1 else x.stride(0)
