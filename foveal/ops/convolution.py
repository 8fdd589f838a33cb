"""Causal convolutions along the sequence: an output sees its own input and some before it.

What came before `x` is passed as `history`, the last R inputs (zeros at the start of a sequence), so that
a sequence in pieces is the sequence whole. `K` is the kernel's size, its last tap the present input's.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.dispatch import choose


def causal_convolution(
    x: Float[Tensor, "B T D"],
    history: Float[Tensor, "B R D"],
    weight: Float[Tensor, "E D K"],
    bias: Float[Tensor, " E"] | None = None,
    dilation: int = 1,
) -> Float[Tensor, "B T E"]:
    """`y_t = b + sum_j W_j x_(t - (K-1-j) dilation)` with R = (K-1) dilation (van den Oord et al. 2016, 2.1).

    The fast path is one product with the K inputs side by side. On a CPU it is as fast as torch's
    convolution on long sequences and faster on one vector, and under autocast the sum is in float32.
    """
    T, K = x.shape[1], weight.shape[2]
    every = torch.cat([history, x], 1)
    shifted = [every[:, j * dilation : j * dilation + T] for j in range(K)]
    if choose("convolution", "one_product", True):
        return F.linear(torch.cat(shifted, 2), weight.transpose(1, 2).flatten(1), bias)
    y = torch.stack([part @ tap.T for part, tap in zip(shifted, weight.unbind(2), strict=True)]).sum(0)
    return y if bias is None else y + bias


def depthwise_convolution(
    x: Float[Tensor, "B T D"],
    history: Float[Tensor, "B R D"],
    weight: Float[Tensor, "D K"],
    bias: Float[Tensor, " D"],
) -> Float[Tensor, "B T D"]:
    """`y_t = b + sum_j w_j * x_(t - (K-1-j))`, each channel by itself, with R = K - 1.

    As K multiply-adds over the sequence it is faster on a CPU than torch's grouped convolution; the fast
    path makes them, and their gradients, in place.
    """
    every = torch.cat([history, x], 1)
    if choose("depthwise", "in_place", True):
        return _Depthwise.apply(every, weight, bias)  # type: ignore[no-untyped-call]
    T, y = x.shape[1], bias
    for j, tap in enumerate(weight.unbind(1)):
        y = torch.addcmul(y, every[:, j : j + T], tap)
    return y


class _Depthwise(torch.autograd.Function):
    """`depthwise_convolution` of history and input together."""

    @staticmethod
    def forward(ctx: Any, every: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(every, weight)
        taps = weight.t().contiguous()
        T = every.shape[1] - len(taps) + 1
        y = torch.addcmul(bias, every[:, :T], taps[0])
        for j in range(1, len(taps)):
            y.addcmul_(every[:, j : j + T], taps[j])
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        every, weight = ctx.saved_tensors
        taps = weight.t().contiguous()
        T, devery, dtaps = dy.shape[1], torch.zeros_like(every), torch.empty_like(taps)
        for j, tap in enumerate(taps):
            devery[:, j : j + T].addcmul_(dy, tap)
            dtaps[j] = (every[:, j : j + T] * dy).sum((0, 1))
        return devery, dtaps.t(), dy.sum((0, 1))


def last_inputs(
    history: Float[Tensor, "B R D"], x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "B R D"]:
    """The history of what comes next: the last R inputs up to each row's own length."""
    R = history.shape[1]
    every = torch.cat([history, x.to(history.dtype)], 1)
    if lengths is None:
        return every[:, x.shape[1] :]
    last = lengths[:, None] + torch.arange(R, device=x.device)
    return every.gather(1, last[:, :, None].expand(-1, -1, x.shape[2]))
