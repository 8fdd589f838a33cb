"""Mamba's short convolution: causal and depthwise, followed by a SiLU."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, channel_tasks, pad_to_lanes

_forward = Kernel("depthwise_conv1d", "forward")
_backward = Kernel("depthwise_conv1d", "backward")


def depthwise_conv1d_silu(
    x: Float[Tensor, "B T D"],
    history: Float[Tensor, "B R D"],
    weight: Float[Tensor, "D K"],
    bias: Float[Tensor, " D"],
) -> Float[Tensor, "B T D"]:
    """Return `y_t = silu(b + sum_j w_j * x_(t - (K-1-j)))` (Gu and Dao 2023, figure 3), in the weights'
    precision.

    The last of the K taps is for the current input. `history` has the R = K - 1 inputs before `x`. There are
    two fast paths: a kernel, and K in-place multiply-adds over the sequence. Both are faster on a CPU than
    torch's grouped convolution.
    """
    x, history = x.to(weight.dtype), history.to(weight.dtype)
    kernel = _forward.usable(weight) and _backward.usable()
    if not use_fast_path("depthwise_conv1d", "kernel" if kernel else "in_place", True):
        padded, T, y = torch.cat([history, x], 1), x.shape[1], bias
        for j, tap in enumerate(weight.unbind(1)):
            y = torch.addcmul(y, padded[:, j : j + T], tap)
        return F.silu(y)
    if kernel:
        y = _DepthwiseKernel.apply(*map(pad_to_lanes, (x, history, weight.t(), bias)))  # type: ignore[no-untyped-call]
        return y[:, :, : x.shape[2]]
    return F.silu(_InPlaceDepthwise.apply(torch.cat([history, x], 1), weight, bias))  # type: ignore[no-untyped-call]


class _DepthwiseKernel(torch.autograd.Function):
    """Convolution and SiLU by the kernel, for taps (K, D), where D is a multiple of the kernel's vector
    length."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, history: Tensor, taps: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, history, taps, bias)
        (B, T, D), y = x.shape, torch.empty_like(x)
        shares = channel_tasks(B, D)
        _forward(B * shares, x, history, taps, bias, y, T, D, len(taps), shares)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, history, taps, bias = ctx.saved_tensors
        (B, T, D), K = x.shape, len(taps)
        dx, dhistory, dtaps = torch.empty_like(x), torch.empty_like(history), x.new_empty(B, K + 1, D)
        dy, shares = dy.contiguous(), channel_tasks(B, D)
        _backward(B * shares, x, history, taps, bias, dy, dx, dhistory, dtaps, T, D, K, shares)
        dtaps = dtaps.sum(0)
        return dx, dhistory, dtaps[:K], dtaps[K]


class _InPlaceDepthwise(torch.autograd.Function):
    """The convolution of history and input concatenated."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(padded, weight)
        taps = weight.t().contiguous()
        T = padded.shape[1] - len(taps) + 1
        y = torch.addcmul(bias, padded[:, :T], taps[0])
        for j in range(1, len(taps)):
            y.addcmul_(padded[:, j : j + T], taps[j])
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        padded, weight = ctx.saved_tensors
        taps = weight.t().contiguous()
        T, dpadded, dtaps = dy.shape[1], torch.zeros_like(padded), torch.empty_like(taps)
        for j, tap in enumerate(taps):
            dpadded[:, j : j + T].addcmul_(dy, tap)
            dtaps[j] = (padded[:, j : j + T] * dy).sum((0, 1))
        return dpadded, dtaps.t(), dy.sum((0, 1))
