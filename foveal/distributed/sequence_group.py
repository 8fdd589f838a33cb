"""The stream between split layers, cut along the sequence (Korthikanti et al. 2022, section 4.2.2).

Norms, dropout, residuals and biases after g compute each position alone, so each rank computes some of them.

    f   forward: gather             backward: reduce-scatter
    g   forward: reduce-scatter     backward: gather

A product keeps its inputs for the backward pass. Of what f gathered, a rank keeps the own positions, and
gathers them again.
"""

from contextlib import AbstractContextManager
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch import distributed as dist
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from foveal.distributed.tensor_group import Compute, TensorGroup
from foveal.distributed.world import lost_rank_ends


class SequenceGroup(TensorGroup):
    """Several ranks, each with a part of the positions of a stream: equal numbers of them, but for the last
    ranks, which may have fewer or none. `whole` are the same ranks for what is not cut.

    A group belongs to one stack, so that it knows the length of the stream that is computed now.
    """

    def __init__(self, whole: TensorGroup, group: dist.ProcessGroup):
        super().__init__(whole.rank, whole.size)
        self.whole, self.group = whole, group
        self._length = 0
        self._entered: tuple[Tensor, Tensor] | None = None
        """All positions of what entered a layer last, and the own ones."""

    def enter(self, x: Tensor) -> Tensor:
        own = _to_autocast(x)
        entered: Tensor = _Enter.apply(own, self, self._length)  # type: ignore[no-untyped-call]
        self._entered = entered.detach(), own.detach()
        return entered

    def enter_whole(self, x: Tensor) -> Tensor:
        return self.whole.enter(x)

    def leave(self, part: Tensor) -> Tensor:
        self._length, self._entered = part.shape[1], None
        own: Tensor = _Leave.apply(part, self)  # type: ignore[no-untyped-call]
        return own

    def cut(self, x: Tensor) -> Tensor:
        self._length = x.shape[1]
        own: Tensor = _Cut.apply(x, self)  # type: ignore[no-untyped-call]
        return own

    def gather(self, x: Tensor) -> Tensor:
        whole: Tensor = _Gather.apply(x, self, self._length)  # type: ignore[no-untyped-call]
        return whole

    def length(self, x: Tensor) -> int:
        return self._length

    def positions(self, x: Tensor) -> slice:
        return self.rows(self._length)

    def own_lengths(self, lengths: Int[Tensor, " B"] | None) -> Int[Tensor, " B"] | None:
        return None if lengths is None else (lengths - self.rows(self._length).start).clamp(min=0)

    def keeping_own(self) -> AbstractContextManager[object]:
        return saved_tensors_hooks(self._keep, self._restore)

    def with_length(self, compute: Compute) -> Compute:
        length = self._length

        def with_its_length(*arguments: Any, **named: Any) -> object:
            self._length = length
            return compute(*arguments, **named)

        return cast(Compute, with_its_length)

    def gather_positions(self, own: Float[Tensor, "B t D"], length: int) -> Float[Tensor, "B T D"]:
        """Return the positions of all ranks."""
        each = -(-length // self.size)
        padded = _pad_positions(own, each).contiguous()
        parts = own.new_empty(self.size, *padded.shape)
        with lost_rank_ends():
            dist.all_gather_single(parts, padded[None], self.group)
        return parts.transpose(0, 1).flatten(1, 2)[:, :length].contiguous()

    def sum_positions(self, part: Float[Tensor, "B T D"]) -> Float[Tensor, "B t D"]:
        """Return the own positions of the sum of the parts of all ranks."""
        own = self.rows(part.shape[1])
        each = -(-part.shape[1] // self.size)
        padded = _pad_positions(part, each * self.size)
        by_rank = torch.unflatten(padded, 1, (self.size, each)).transpose(0, 1).contiguous()
        summed = by_rank.new_empty(by_rank.shape[1:])
        with lost_rank_ends():
            dist.reduce_scatter_single(summed[None], by_rank, group=self.group)
        return summed[:, : own.stop - own.start]

    def own_positions(self, whole: Float[Tensor, "B T D"]) -> Float[Tensor, "B t D"]:
        """Return the own of all positions."""
        return whole[:, self.rows(whole.shape[1])].contiguous()

    def _keep(self, saved: Tensor) -> "Tensor | _Kept":
        """Return what is kept of a tensor that the backward pass needs."""
        if self._entered is None:
            return saved
        entered, own = self._entered
        if saved.untyped_storage()._cdata != entered.untyped_storage()._cdata:
            return saved
        return _Kept(own, entered.shape[1], saved.shape, saved.stride(), saved.storage_offset())

    def _restore(self, kept: "Tensor | _Kept") -> Tensor:
        if isinstance(kept, Tensor):
            return kept
        whole = self.gather_positions(kept.own, kept.length)
        return whole.as_strided(kept.shape, kept.stride, kept.offset)


class _Kept(NamedTuple):
    """The own positions of a tensor of `length` positions, of which a view was needed."""

    own: Tensor
    length: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int | torch.SymInt


class _Enter(torch.autograd.Function):
    """f: all positions forward, the own ones of the sum over the ranks backward."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, group: SequenceGroup, length: int) -> Tensor:
        ctx.group = group
        return group.gather_positions(own, length)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.group.sum_positions(gradient), None, None


class _Leave(torch.autograd.Function):
    """g: the own positions of the sum over the ranks forward, all positions backward."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: SequenceGroup) -> Tensor:
        ctx.group, ctx.length = group, part.shape[1]
        return group.sum_positions(part)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.group.gather_positions(gradient, ctx.length), None


class _Cut(_Leave):
    """The own positions forward, all positions backward."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, group: SequenceGroup) -> Tensor:
        ctx.group, ctx.length = group, whole.shape[1]
        return group.own_positions(whole)


class _Gather(_Enter):
    """All positions forward, the own ones backward: each rank has the whole gradient."""

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.group.own_positions(gradient), None, None


def _pad_positions(x: Tensor, count: int) -> Tensor:
    missing = count - x.shape[1]
    return F.pad(x, (0, 0, 0, missing)) if missing else x


def _to_autocast(x: Tensor) -> Tensor:
    """Return x as the products of a layer read it, so that no more bytes are gathered."""
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x
