"""The step sizes of Mamba's scan: positive, and small at initialization."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, channel_tasks, pad_to_lanes

_forward = Kernel("mamba_delta", "forward")
_backward = Kernel("mamba_delta", "backward")


def mamba_delta(x: Float[Tensor, "B T E"], bias: Float[Tensor, " E"]) -> Float[Tensor, "B T E"]:
    """Return `softplus(x + bias)` (Gu and Dao 2023, 3.4), in the dtype of `bias`, since steps are small.

    The kernel needs one pass over memory. For a single input, torch's operations are faster.
    """
    if use_fast_path(
        "mamba_delta", "kernel", x.shape[1] > 1 and _forward.usable(bias) and _backward.usable()
    ):
        delta = _MambaDelta.apply(pad_to_lanes(x.to(bias.dtype)), pad_to_lanes(bias))  # type: ignore[no-untyped-call]
        return delta[:, :, : x.shape[2]]
    return F.softplus(x + bias)


class _MambaDelta(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, bias)
        (B, T, E), delta = x.shape, torch.empty_like(x)
        shares = channel_tasks(B, E)
        _forward(B * shares, x, bias, delta, T, E, shares)
        return delta

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ddelta: Tensor) -> tuple[Tensor, Tensor]:
        x, bias = ctx.saved_tensors
        (B, T, E), ddelta = x.shape, ddelta.contiguous()
        dx, dbias, shares = torch.empty_like(x), x.new_empty(B, E), channel_tasks(B, E)
        _backward(B * shares, x, bias, ddelta, dx, dbias, T, E, shares)
        return dx, dbias.sum(0)
