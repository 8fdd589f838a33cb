"""The weighted sum of experts that ranks share: each vector travels to the ranks of its experts and back."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.distributed.expert_group import ExpertGroup
from foveal.ops.moe import apply_sorted


def apply_spread_experts(
    x: Float[Tensor, "N D"],
    expert_ids: Int[Tensor, "N A"],
    gates: Float[Tensor, "N A"],
    expand: Float[Tensor, "E_own H D"],
    contract: Float[Tensor, "E_own D H"],
    activate: Callable[[Tensor], Tensor],
    count: int,
    group: ExpertGroup,
) -> Float[Tensor, "N D"]:
    """Return `moe.apply_experts` over the `count` experts of all ranks (Lepikhin et al. 2020, section 3.2).

    All ranks of the group call this together. An expert computes the vectors of all ranks at once.
    """
    sizes = expert_ids.flatten().bincount(minlength=count + 1)[:count]
    order = expert_ids.flatten().argsort(stable=True)[: int(sizes.sum())]
    source = order // expert_ids.shape[1]
    arriving = group.exchange_counts(sizes)
    sent = [int(sizes[group.rows_of(rank, count)].sum()) for rank in range(group.size)]
    received = arriving.sum(1).tolist()
    arrived = group.exchange(x.index_select(0, source), sent, received)
    # Vectors arrive by rank, and are computed by expert.
    own = torch.arange(len(expand), device=x.device).repeat(group.size)
    by_expert = own.repeat_interleave(arriving.flatten()).argsort(stable=True)
    own_sizes = arriving.sum(0).tolist()
    computed = apply_sorted(arrived.index_select(0, by_expert), own_sizes, expand, contract, activate)
    returned = torch.zeros_like(computed).index_copy(0, by_expert, computed)
    y = gates.flatten().index_select(0, order)[:, None] * group.exchange(returned, received, sent)
    return torch.zeros_like(x, dtype=y.dtype).index_add(0, source, y)
