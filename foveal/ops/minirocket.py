"""MiniRocket's features of series: fixed convolutions, and the share of time that each is above a threshold.

(Dempster, Schmidt and Webb 2021.)
"""

import math
from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel

KERNEL_LENGTH, HEAVY_WEIGHTS = 9, 3
KERNELS = math.comb(KERNEL_LENGTH, HEAVY_WEIGHTS)
"""84 kernels: three weights of 2, and six of -1, in every order."""
GOLDEN_RATIO = (1 + 5**0.5) / 2
_forward = Kernel("positive_shares", "forward")


def kernels() -> Float[Tensor, "84 9"]:
    """Return the kernels. The weights of each sum to 0, so a constant added to a series changes nothing."""
    weights = torch.full((KERNELS, KERNEL_LENGTH), -1.0)
    for row, heavy in enumerate(combinations(range(KERNEL_LENGTH), HEAVY_WEIGHTS)):
        weights[row, list(heavy)] = 2.0
    return weights


def dilations(length: int, slots: int, most: int) -> list[int]:
    """Return a dilation for each of `slots` features of a kernel, in ascending order.

    At most `most` exponents are evenly spaced from 2^0 to the largest dilation at which a kernel fits into a
    series of `length` steps.
    """
    largest = max(0.0, math.log2(max(1.0, (length - 1) / (KERNEL_LENGTH - 1))))
    exponents = [largest * index / max(1, most - 1) for index in range(most)]
    each, more = divmod(slots, most)
    return [int(2**x) for index, x in enumerate(exponents) for _ in range(each + (index < more))]


def dilated_convolution(
    values: Float[Tensor, "B C S"], channels: Float[Tensor, "K C"], dilation: int
) -> Float[Tensor, "B K S"]:
    """Return every kernel's convolution with the sum of its channels, with zeros beyond both ends."""
    weights = channels[:, :, None] * kernels().to(values)[:, None]
    return F.conv1d(values, weights, padding=KERNEL_LENGTH // 2 * dilation, dilation=dilation)


def counted_steps(
    lengths: Int[Tensor, " B"], dilation: int, kernel_parity: int
) -> tuple[Int[Tensor, "B K"], Int[Tensor, "B K"]]:
    """Return the first of the steps that count for each kernel, and the step after the last.

    All steps of the series count, or those at which the kernel is inside of the series. The two alternate
    from kernel to kernel. All steps count if the kernel fits nowhere.
    """
    margin = KERNEL_LENGTH // 2 * dilation
    inside = (torch.arange(KERNELS, device=lengths.device) + kernel_parity) % 2 == 1
    margins = torch.where(inside & (lengths[:, None] > 2 * margin), margin, 0)
    return margins, lengths[:, None] - margins


def positive_shares(
    responses: Float[Tensor, "B K S"],
    begins: Int[Tensor, "B K"],
    ends: Int[Tensor, "B K"],
    thresholds: Float[Tensor, "K Q"],
) -> Float[Tensor, "B K Q"]:
    """Return the share of the steps from begin to end at which a response is above each threshold."""
    if use_fast_path("positive_shares", "kernel", _forward.usable(responses, thresholds)):
        (B, K, S), Q = responses.shape, thresholds.shape[1]
        shares = responses.new_empty(B, K, Q)
        arguments = responses.contiguous(), begins.contiguous(), ends.contiguous(), thresholds.contiguous()
        _forward(B, *arguments, shares, K, S, Q)
        return shares
    step = torch.arange(responses.shape[2], device=responses.device)
    counted = (step >= begins[:, :, None]) & (step < ends[:, :, None])
    above = [((responses > each[:, None]) & counted).sum(2) for each in thresholds.T]
    return torch.stack(above, 2) / (ends - begins).clamp(min=1)[:, :, None]


def quantiles(count: int) -> Float[Tensor, " Q"]:
    """Return numbers that fill the interval from 0 to 1 evenly for any count (a low-discrepancy sequence)."""
    return torch.arange(1, count + 1, dtype=torch.float64) * GOLDEN_RATIO % 1.0
