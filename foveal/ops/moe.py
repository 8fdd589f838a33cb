"""Mixture of experts: routing of vectors, load balancing, and the weighted sum of the experts.

N is the number of vectors in the batch. There are `E` experts, and `A` of them are active for each vector.
Padding is routed to expert id `E`, one past the last, which stands for no expert. Padding therefore costs no
computation, and has no influence on the loss.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path


def top_k_routing(
    probs: Float[Tensor, "*N E"], active: int, valid: Bool[Tensor, "*N"] | None = None
) -> tuple[Int[Tensor, "*N A"], Float[Tensor, "*N A"]]:
    """Return the `active` most likely experts of each vector and their gates. Where `valid` is False, return
    no expert.

    The gates are the probabilities of the active experts divided by their sum (Shazeer et al. 2017, equations
    3 to 5). With one active expert, the divided gate would be 1 and give the router no gradient, so the gate
    is the probability itself (Fedus et al. 2021, equation 2).
    """
    best, expert_ids = probs.topk(active, -1)
    gates = best if active == 1 else best / best.sum(-1, keepdim=True)
    return expert_ids if valid is None else expert_ids.masked_fill(~valid[..., None], probs.shape[-1]), gates


def drop_above_capacity(
    expert_ids: Int[Tensor, "B T A"], experts: int, factor: float
) -> Int[Tensor, "B T A"]:
    """Return the expert ids, with no expert where an expert of the row has no room left.

    An expert has room for `ceil(factor * N A / E)` of the N vectors of a row. All first choices come before
    the second ones, in the order of the vectors (Lepikhin et al. 2020, algorithm 1, where a row is a group).
    """
    B, T, A = expert_ids.shape
    routed = expert_ids < experts
    capacity = (factor * routed.flatten(1).sum(1) / experts).ceil()
    queue = expert_ids.transpose(1, 2).reshape(B, A * T)
    places = F.one_hot(queue, experts + 1).cumsum(1).gather(2, queue[..., None])[..., 0]
    has_room = (places <= capacity[:, None]).view(B, A, T).transpose(1, 2)
    return expert_ids.masked_fill(~has_room, experts)


def load_balancing_loss(
    probs: Float[Tensor, "B T E"], expert_ids: Int[Tensor, "B T A"]
) -> Float[Tensor, " B"]:
    """Return `E sum_e f_e P_e` of each row (Fedus et al. 2021, equation 4): 1 if all experts are used
    equally.

    f_e is the fraction of the row's vectors that are routed to expert e, P_e the mean probability of e.
    Vectors without an expert don't count. A row in which no vector has an expert gives 0.
    """
    E, A = probs.shape[-1], expert_ids.shape[-1]
    ones = probs.new_ones(()).expand_as(expert_ids.flatten(1))
    sent = probs.new_zeros(len(expert_ids), E + 1).scatter_add(1, expert_ids.flatten(1), ones)[:, :E]
    count = sent.sum(1, keepdim=True).clamp(min=1)  # A for each vector
    mean = A * torch.where(expert_ids[..., :1] < E, probs, 0.0).sum(1) / count
    return E * (sent / count * mean).sum(1)


def apply_experts_reference(
    x: Float[Tensor, "N D"],
    expert_ids: Int[Tensor, "N A"],
    gates: Float[Tensor, "N A"],
    expand: Float[Tensor, "E H D"],
    contract: Float[Tensor, "E D H"],
    activate: Callable[[Tensor], Tensor],
) -> Float[Tensor, "N D"]:
    """Return `y = sum_e g_e(x) W_2e activate(W_1e x)`, with gate 0 for experts that are not chosen."""
    y = torch.zeros_like(x)
    for e, (W_1, W_2) in enumerate(zip(expand.unbind(), contract.unbind(), strict=True)):
        gate = torch.where(expert_ids == e, gates, 0.0).sum(1, keepdim=True)
        y = y + gate * F.linear(activate(F.linear(x, W_1)), W_2)
    return y


def apply_experts(
    x: Float[Tensor, "N D"],
    expert_ids: Int[Tensor, "N A"],
    gates: Float[Tensor, "N A"],
    expand: Float[Tensor, "E H D"],
    contract: Float[Tensor, "E D H"],
    activate: Callable[[Tensor], Tensor],
) -> Float[Tensor, "N D"]:
    """Return `apply_experts_reference`, computing each expert only for its own vectors, sorted by expert.

    No vector is dropped, however many choose the same expert (Gale et al. 2022).
    """
    if not use_fast_path("moe", "sorted", True):
        return apply_experts_reference(x, expert_ids, gates, expand, contract, activate)
    sizes = expert_ids.flatten().bincount(minlength=len(expand) + 1)[: len(expand)].tolist()
    order = expert_ids.flatten().argsort(stable=True)[
        : sum(sizes)
    ]  # vectors without an expert come last, and are cut off
    source = order // expert_ids.shape[1]
    computed = apply_sorted(x.index_select(0, source), sizes, expand, contract, activate)
    y = gates.flatten().index_select(0, order)[:, None] * computed
    return torch.zeros_like(x, dtype=y.dtype).index_add(0, source, y)


def apply_sorted(
    x: Float[Tensor, "N D"],
    sizes: list[int],
    expand: Float[Tensor, "E H D"],
    contract: Float[Tensor, "E D H"],
    activate: Callable[[Tensor], Tensor],
) -> Float[Tensor, "N D"]:
    """Return `W_2e activate(W_1e x)`: the first `sizes[0]` vectors use expert 0, the next `sizes[1]` expert 1
    and so on.

    In lower precisions on a CPU, oneDNN compiles a kernel for each number of rows, which takes 30 times as
    long as a product of 1,000 rows, and keeps it in a megabyte. Experts then get rows of zeros, so that few
    numbers of rows occur.
    """
    device = x.device.type
    if torch.is_autocast_enabled(device):
        lower = torch.get_autocast_dtype(device)
        x, expand, contract = x.to(lower), expand.to(lower), contract.to(lower)
    compiles = device == "cpu" and x.element_size() < 4
    rounded = [*map(_rounded_up, sizes)] if compiles else sizes
    if rounded == sizes:
        return grouped_linear(activate(grouped_linear(x, expand, sizes)), contract, sizes)
    added = torch.tensor(rounded) - torch.tensor(sizes)
    before = (added.cumsum(0) - added).repeat_interleave(torch.tensor(sizes)).to(x.device)
    places = torch.arange(len(x), device=x.device) + before
    padded = x.new_zeros(sum(rounded), x.shape[1]).index_copy(0, places, x)
    hidden = activate(grouped_linear(padded, expand, rounded))
    return grouped_linear(hidden, contract, rounded).index_select(0, places)


def _rounded_up(size: int) -> int:
    """Return the next number with at most four binary digits before its zeros: at most an eighth more."""
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def grouped_linear(
    x: Float[Tensor, "N D"], weight: Float[Tensor, "E O D"], sizes: list[int]
) -> Float[Tensor, "N O"]:
    """Return `W_e x`: the first `sizes[0]` vectors use W_0, the next `sizes[1]` use W_1 and so on."""
    return _GroupedLinear.apply(x, weight, sizes)  # type: ignore[no-untyped-call]


class _GroupedLinear(torch.autograd.Function):
    """One matrix product per group, written into the group's rows of the result.

    Plain autograd would stack the gradients of all experts again. On a CPU, this is as fast as
    `torch._grouped_mm`, which does not support float64, and supports only widths that are multiples of 16
    bytes.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, sizes: list[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.sizes = sizes
        y = x.new_empty(len(x), weight.shape[1])
        for x_e, W, y_e in zip(torch.split(x, sizes), weight, torch.split(y, sizes), strict=True):
            torch.mm(x_e, W.t(), out=y_e)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        d_x, d_weight = torch.empty_like(x), torch.empty_like(weight)
        groups = (torch.split(part, ctx.sizes) for part in (x, d_x, gradient))
        for x_e, d_x_e, d_y, W, d_W in zip(*groups, weight, d_weight, strict=True):
            torch.mm(d_y, W, out=d_x_e)
            torch.mm(d_y.t(), x_e, out=d_W)
        return d_x, d_weight, None
