"""Additive attention for a decoder, which sends one query after another to the same memory."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from foveal.ops.attention.dot_product import masked_softmax
from foveal.ops.attention.step_by_step import additive_scores, weighted_sum
from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, pad_to_lanes

MIN_KERNEL_NUMBERS = 1 << 17
"""Up to this many elements of the keys, torch's operations are faster for a single query.

Time in µs of a step that generates one position, with torch's operations and with the kernel, one thread:

| rows, memory, width | torch | kernel |
|---|---|---|
| 1, 13, 128 | 160 | 220 |
| 5, 100, 128 | 307 | 335 |
| 10, 100, 128 | 424 | 434 |
| 40, 100, 128 | 1540 | 920 |
"""

_forward = Kernel("additive", "forward")
_backward = Kernel("additive", "backward")


def additive_attention(
    keys: Float[Tensor, "B S A"],
    v: Float[Tensor, " A"],
    values: Float[Tensor, "B S M"],
    mask: Bool[Tensor, "B S"],
    num_queries: int,
) -> Callable[[Float[Tensor, "B A"]], Float[Tensor, "B M"]]:
    """Return a function from q to c, to be called `num_queries` times.

    `c = sum_i a_i h_i`, `a = softmax(e)`, `e_i = v . tanh(q + k_i)`. The keys are `k_i = U h_i`, and `q = W
    s` (Bahdanau et al. 2015, A.1.2). Only vectors at which the mask is True have a weight. If the mask is
    False everywhere, c is zero. The kernel computes in float32, and returns float32.
    """
    worthwhile = num_queries > 1 or keys.numel() > MIN_KERNEL_NUMBERS
    if not use_fast_path("additive", "kernel", worthwhile and _forward.usable(v) and _backward.usable()):
        return lambda q: weighted_sum(masked_softmax(additive_scores(q, keys, v), mask), values)
    width, present = values.shape[2], mask.float().contiguous()
    buffers = [
        pad_to_lanes(keys.float()),
        pad_to_lanes(v).expand(len(keys), -1).contiguous(),
        pad_to_lanes(values.float()),
    ]

    def attend(q: Float[Tensor, "B A"]) -> Float[Tensor, "B M"]:
        nonlocal buffers
        c, *buffers = _AdditiveStep.apply(q.float(), *buffers, present, width)  # type: ignore[no-untyped-call]
        return c

    return attend


class _AdditiveStep(torch.autograd.Function):
    """One step. Keys, v (a copy for each row) and values pass through the step to the next step.

    In the backward pass, a step therefore receives the sums of the gradients of all later steps, and adds its
    own gradients in place. The last step allocates these buffers. No other code holds the buffers, since the
    tensors that pass through never leave `additive_attention`. Without this chain, each step would allocate
    gradients as large as the memory, and autograd would add them up.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, keys: Tensor, v: Tensor, values: Tensor, present: Tensor, width: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (B, S, D), M = keys.shape, values.shape[2]
        ctx.set_materialize_grads(False)
        ctx.width = q.shape[1]
        q, weights, c = pad_to_lanes(q), q.new_empty(B, -(-S // LANES) * LANES), q.new_empty(B, M)
        _forward(B, q, keys, v, values, present, weights, c, S, D, M)
        ctx.save_for_backward(q, keys, v, values, present, weights)
        return c[:, :width], keys, v, values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dc: Tensor | None, *accumulated: Tensor | None) -> tuple[Tensor | None, ...]:
        if dc is None:
            return None, *accumulated, None, None
        q, keys, v, values, present, weights = ctx.saved_tensors
        (B, S, D), M = keys.shape, values.shape[2]
        buffers = [
            torch.zeros_like(tensor) if buffer is None else buffer
            for tensor, buffer in zip((keys, v, values), accumulated, strict=True)
        ]
        dq, dc, scratch = torch.empty_like(q), pad_to_lanes(dc), torch.empty_like(weights)
        _backward(B, q, keys, v, values, present, weights, dc, scratch, dq, *buffers, S, D, M)
        return dq[:, : ctx.width], *buffers, None, None
