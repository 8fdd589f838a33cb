"""Causal convolutions along the sequence: an output depends on the input at its position and on earlier
inputs.

`history` has the R inputs before `x`, zeros at the start of a sequence. The outputs are therefore the same
whether a sequence is passed in parts or at once. `K` is the kernel size. The last tap is for the current
input.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path


def causal_conv1d(
    x: Float[Tensor, "B T D"],
    history: Float[Tensor, "B R D"],
    weight: Float[Tensor, "E D K"],
    bias: Float[Tensor, " E"] | None = None,
    dilation: int = 1,
) -> Float[Tensor, "B T E"]:
    """Compute `y_t = b + sum_j W_j x_(t - (K-1-j) dilation)` with R = (K-1) dilation (van den Oord et al.
    2016, 2.1).

    The fast path is one matrix product, with the K inputs of each output concatenated. On a CPU, this path is
    as fast as torch's convolution on long sequences, and faster on a single vector. Under autocast the sum is
    in float32.
    """
    T, K = x.shape[1], weight.shape[2]
    padded = torch.cat([history, x], 1)
    shifted = [padded[:, j * dilation : j * dilation + T] for j in range(K)]
    if use_fast_path("causal_conv1d", "one_product", True):
        return F.linear(torch.cat(shifted, 2), weight.transpose(1, 2).flatten(1), bias)
    y = torch.stack([part @ tap.T for part, tap in zip(shifted, weight.unbind(2), strict=True)]).sum(0)
    return y if bias is None else y + bias


def updated_history(
    history: Float[Tensor, "B R D"], x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "B R D"]:
    """Return the history for the next call: the last R inputs up to each row's length."""
    R, T = history.shape[1], x.shape[1]
    if lengths is None:
        count = min(R, T)
        return torch.cat([history[:, count:], x[:, T - count :].to(history.dtype)], 1)
    inputs = torch.cat([history, x.to(history.dtype)], 1)
    last = lengths[:, None] + torch.arange(R, device=x.device)
    return inputs.gather(1, last[:, :, None].expand(-1, -1, x.shape[2]))
