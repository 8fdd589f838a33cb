"""Weights of which each process holds a part, cut along an axis, and how parts and whole tensors become each
other."""

from dataclasses import dataclass

import torch
from torch import Tensor

from foveal.core.stored_tensor import Span, StoredTensor
from foveal.distributed.placement import Placement
from foveal.distributed.tensor_group import TensorGroup
from foveal.distributed.world import World


@dataclass(frozen=True)
class Cut:
    """The axis along which a weight is cut, and its whole length there."""

    axis: int
    length: int


class PartialWeights(Placement):
    """The parts of a model's weights that the ranks of `sharing` hold.

    `parts` are the own parts by name, and `cuts` say how each was cut; weights without a cut stay whole on
    each rank. Of processes that hold equal parts, one `writes` them.
    """

    is_whole = False

    def __init__(self, sharing: World, parts: dict[str, Tensor], cuts: dict[str, Cut], writes: bool = True):
        self.sharing, self._parts = sharing, parts
        self.part, self.writes = sharing.rank, writes
        self._cuts = {parts[name]: cut for name, cut in cuts.items()}
        self._group = TensorGroup(sharing.rank, sharing.size)

    def own_weight(self, name: str, weight: Tensor) -> Tensor:
        return self._parts.get(name, weight)

    def whole_shape(self, own: Tensor) -> torch.Size:
        cut = self._cuts.get(own)
        if cut is None:
            return own.shape
        return torch.Size((*own.shape[: cut.axis], cut.length, *own.shape[cut.axis + 1 :]))

    def counts(self, own: Tensor) -> bool:
        return own in self._cuts or self.sharing.rank == 0

    def whole(self, value: Tensor, own: Tensor) -> Tensor:
        cut = self._cuts.get(own)
        if cut is None or value.dim() < own.dim():
            return value
        axis = value.dim() - own.dim() + cut.axis
        rows = value.movedim(axis, 0)
        padded = rows.new_zeros(-(-cut.length // self.sharing.size), *rows.shape[1:])
        padded[: len(rows)] = rows
        return self.gather(padded).flatten(0, 1)[: cut.length].movedim(0, axis)

    def own(self, value: Tensor, own: Tensor) -> Tensor:
        cut = self._cuts.get(own)
        if cut is None or value.dim() < own.dim():
            return value
        axis = value.dim() - own.dim() + cut.axis
        rows = self._group.rows(value.shape[axis])
        return value.narrow(axis, rows.start, rows.stop - rows.start).clone()

    def span(self, value: Tensor, own: Tensor) -> Span | None:
        cut = self._cuts.get(own)
        if cut is None or value.dim() < own.dim():
            return None
        return Span(value.dim() - own.dim() + cut.axis, self._group.rows(cut.length).start, cut.length)

    def read(self, stored: StoredTensor, own: Tensor) -> Tensor:
        cut = self._cuts.get(own)
        if cut is None or stored.dim() < own.dim():
            return stored.whole()
        rows = self._group.rows(cut.length)
        return stored.narrow(stored.dim() - own.dim() + cut.axis, rows.start, rows.stop - rows.start)

    def gather(self, numbers: Tensor) -> Tensor:
        return self.sharing.gather(numbers)
