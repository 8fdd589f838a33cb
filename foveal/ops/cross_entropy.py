"""Cross-entropy after a projection: `-log softmax(W h + b)` of the targets."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.core.runtime import at_least_float32, without_autocast
from foveal.ops.jit.dispatch import use_fast_path

MIN_CHUNKED_CLASSES = 1024
"""With fewer classes all logits fit in the cache, and computing them in chunks is not faster."""
LOGITS_PER_CHUNK = 1 << 21
"""Logits in a chunk."""


class CrossEntropySums(NamedTuple):
    """Sums of the losses over all rows."""

    label_smoothed: Float[Tensor, ""]
    """The training loss: `-sum_v q_v log p_v`, `q = (1 - label_smoothing) onehot + label_smoothing / V`."""
    nll: Float[Tensor, ""]
    """`-log p` of the targets, without gradient."""


def cross_entropy_reference(
    logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], label_smoothing: float = 0.0
) -> CrossEntropySums:
    """Return the sums, with label smoothing as in Szegedy et al. 2016, section 7."""
    logits = at_least_float32(logits)
    total = logits.logsumexp(-1)
    nats = total - logits.gather(-1, targets[:, None]).squeeze(-1)
    smoothed = (
        nats
        if not label_smoothing
        else (1 - label_smoothing) * nats + label_smoothing * (total - logits.mean(-1))
    )
    return CrossEntropySums(smoothed.sum(), nats.detach().sum())


def linear_cross_entropy(
    h: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " N"],
    label_smoothing: float = 0.0,
) -> CrossEntropySums:
    """Return `cross_entropy_reference` of `W h + b`.

    With many classes, the logits are computed in chunks, so that they never all exist at the same time.
    """
    if not use_fast_path(
        "cross_entropy",
        "chunks",
        weight.shape[0] >= MIN_CHUNKED_CLASSES and not torch.compiler.is_compiling(),
    ):
        return cross_entropy_reference(F.linear(h, weight, bias), targets, label_smoothing)
    device = h.device.type
    if torch.is_autocast_enabled(device):
        low = torch.get_autocast_dtype(device)
        h, weight, bias = h.to(low), weight.to(low), None if bias is None else bias.to(low)
    sums = _ChunkedCrossEntropy.apply(h, weight, bias, targets, label_smoothing, torch.is_grad_enabled())  # type: ignore[no-untyped-call]
    return CrossEntropySums(*sums)


@torch.no_grad()
def linear_argmax(
    h: Float[Tensor, "N D"], weight: Float[Tensor, "V D"], bias: Float[Tensor, " V"] | None
) -> Int[Tensor, " N"]:
    """Return the highest of `W h + b` of each row, computed in chunks of rows."""
    chunks = torch.split(h, max(1, LOGITS_PER_CHUNK // len(weight)))
    return torch.cat([F.linear(rows, weight, bias).argmax(1) for rows in chunks])


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Computes the logits, the loss and the gradients chunk by chunk, while a chunk of rows is in the cache.

    `d label_smoothed / d logits = softmax - q`. Before the backward pass, only a scalar factor of the
    gradient is unknown. The gradients of h, W and b are therefore computed in the forward pass, and nothing
    of size N x V is stored or computed twice.
    """

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        label_smoothing: float,
        grad: bool,
    ) -> tuple[Tensor, Tensor]:
        (N, _), V, exact = h.shape, len(weight), torch.promote_types(h.dtype, torch.float32)
        smoothed, nats = h.new_zeros((), dtype=exact), h.new_zeros((), dtype=exact)
        size = max(1, LOGITS_PER_CHUNK // V)
        needed = [grad and need for need in ctx.needs_input_grad[:3]]
        dh = torch.empty_like(h) if needed[0] else None
        dw = torch.zeros_like(weight, dtype=exact) if needed[1] else None
        db = torch.zeros_like(bias, dtype=exact) if bias is not None and needed[2] else None
        with without_autocast(h.device):
            for rows in (slice(first, first + size) for first in range(0, N, size)):
                logits = F.linear(h[rows], weight, bias).to(exact)
                labels = targets[rows, None]
                target_logits = logits.gather(1, labels).squeeze(1)
                mean = logits.mean(1) if label_smoothing else target_logits
                top = logits.amax(1, keepdim=True)
                powers = logits.sub_(top).exp_()
                sums = powers.sum(1, keepdim=True)
                total = (sums.log() + top).squeeze(1)
                nats += (total - target_logits).sum()
                smoothed += (total - (1 - label_smoothing) * target_logits - label_smoothing * mean).sum()
                if not any(needed):
                    continue
                dlogits = powers.div_(sums)
                if label_smoothing:
                    dlogits.sub_(label_smoothing / V)
                dlogits.scatter_add_(1, labels, dlogits.new_full((), label_smoothing - 1).expand_as(labels))
                if db is not None:
                    db += dlogits.sum(0)
                dlogits = dlogits.to(h.dtype)
                if dh is not None:
                    torch.mm(dlogits, weight, out=dh[rows])
                if dw is not None and dw.dtype == h.dtype:
                    dw.addmm_(dlogits.mT, h[rows])
                elif dw is not None:
                    dw += dlogits.mT @ h[rows]
        ctx.mark_non_differentiable(nats)
        ctx.save_for_backward(dh, dw, db)
        ctx.dtypes = [None if x is None else x.dtype for x in (h, weight, bias)]
        return smoothed, nats

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = (
            None if x is None else (x * d_smoothed).to(dtype)
            for x, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        )
        return (*gradients, None, None, None)
