"""The sums by which several ranks join the parts of a layer, with their gradients."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch import distributed as dist

from foveal.distributed.sequence_group import SequenceGroup
from foveal.distributed.tensor_group import TensorGroup
from foveal.distributed.world import lost_rank_ends


class SplitGroup(TensorGroup):
    """Several ranks, which compute parts of each layer at the same time."""

    def __init__(self, group: dist.ProcessGroup):
        super().__init__(dist.get_rank(group), dist.get_world_size(group))
        self.group = group

    def enter(self, x: Tensor) -> Tensor:
        entered: Tensor = _Enter.apply(x, self.group)  # type: ignore[no-untyped-call]
        return entered

    def leave(self, part: Tensor) -> Tensor:
        whole: Tensor = _Leave.apply(part, self.group)  # type: ignore[no-untyped-call]
        return whole

    def along_sequence(self) -> TensorGroup:
        return SequenceGroup(self, self.group)

    def join(self, part: Float[Tensor, "*B V"], length: int) -> Float[Tensor, "*B W"]:
        whole: Tensor = _Join.apply(part, self, length)  # type: ignore[no-untyped-call]
        return whole

    def maximum(self, part: Tensor) -> Tensor:
        largest = part.detach().clone()
        with lost_rank_ends():
            dist.all_reduce(largest, dist.ReduceOp.MAX, self.group)
        return largest


class _Enter(torch.autograd.Function):
    """f: identity forward, the sum over the ranks backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _sum(gradient, ctx.group), None


class _Leave(torch.autograd.Function):
    """g: the sum over the ranks forward, identity backward."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: dist.ProcessGroup) -> Tensor:
        return _sum(part, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class _Join(torch.autograd.Function):
    """The parts of the last axis one after another forward, the own part backward."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: SplitGroup, length: int) -> Tensor:
        ctx.rows = group.rows(length)
        padded = part.new_zeros(*part.shape[:-1], -(-length // group.size))
        padded[..., : part.shape[-1]] = part
        parts = part.new_empty(group.size, *padded.shape)
        with lost_rank_ends():
            dist.all_gather_single(parts, padded[None], group.group)
        return torch.cat([*parts], -1)[..., :length]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient[..., ctx.rows].contiguous(), None, None


def _sum(part: Tensor, group: dist.ProcessGroup) -> Tensor:
    total = part.clone(memory_format=torch.contiguous_format)
    with lost_rank_ends():
        dist.all_reduce(total, group=group)
    return total
