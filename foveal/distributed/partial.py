"""Weights of which each process holds a part, and how parts and whole tensors become each other."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from foveal.core.stored_tensor import Box, StoredTensor
from foveal.distributed.placement import Placement
from foveal.distributed.tensor_group import TensorGroup
from foveal.distributed.world import World


class Cut(ABC):
    """How the processes of a group hold a tensor. Tensors may have more `axes` before those of the weight."""

    sharing: World

    @abstractmethod
    def whole_shape(self, part: torch.Size) -> torch.Size:
        """Return the shape of the whole tensor, from that of the own part."""

    def start(self, axes: int) -> tuple[int, int]:
        """Return an axis along which the own part begins at a row, and that row."""
        return axes, 0

    @abstractmethod
    def whole(self, part: Tensor, axes: int) -> Tensor:
        """Return the whole tensor. All processes of the group call this together."""

    @abstractmethod
    def own(self, whole: Tensor, axes: int) -> Tensor:
        """Return the own part of a whole tensor."""


@dataclass(frozen=True)
class AxisCut(Cut):
    """An axis of the given length, of which each process has an equal number of rows; the last ones have
    fewer."""

    sharing: World
    axis: int
    length: int

    def whole_shape(self, part: torch.Size) -> torch.Size:
        return torch.Size((*part[: self.axis], self.length, *part[self.axis + 1 :]))

    def start(self, axes: int) -> tuple[int, int]:
        return axes + self.axis, self._rows().start

    def whole(self, part: Tensor, axes: int) -> Tensor:
        rows = part.movedim(axes + self.axis, 0)
        padded = rows.new_zeros(-(-self.length // self.sharing.size), *rows.shape[1:])
        padded[: len(rows)] = rows
        return self.sharing.gather(padded).flatten(0, 1)[: self.length].movedim(0, axes + self.axis)

    def own(self, whole: Tensor, axes: int) -> Tensor:
        rows = self._rows()
        return whole.narrow(axes + self.axis, rows.start, rows.stop - rows.start).clone()

    def _rows(self) -> slice:
        return TensorGroup(self.sharing.rank, self.sharing.size).rows(self.length)


@dataclass
class Parts:
    """The own part of each weight of a model by name, and how it was cut, one cut after another.

    `groups` are those that hold a copy of the model together.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    cuts: dict[str, list[Cut]] = field(default_factory=dict)
    groups: list[World] = field(default_factory=list)

    def cut(self, name: str, part: Tensor, cut: Cut) -> None:
        """Replace a tensor by its own part."""
        self.tensors[name] = part
        self.cuts.setdefault(name, []).append(cut)

    def cut_axes(self, model: nn.Module, axes: dict[nn.Parameter, int], sharing: World) -> None:
        """Cut weights along the given axes among the processes of a group. A module keeps its parts alone."""
        self.groups.append(sharing)
        for name, parameter in model.named_parameters():
            if (axis := axes.get(parameter)) is not None:
                cut = AxisCut(sharing, axis, parameter.shape[axis])
                parameter.data = cut.own(parameter.data, 0).contiguous()
                self.cut(name, parameter.detach(), cut)


def whole_parts(model: nn.Module) -> Parts:
    """Return the weights of a model that is not cut."""
    return Parts({name: weight.detach() for name, weight in model.named_parameters()})


class PartialWeights(Placement):
    """The parts of a model's weights that this process holds. Of processes that hold equal parts, one
    `writes` them."""

    is_whole = False

    def __init__(self, parts: Parts, writes: bool = True):
        self._parts, self._groups, self.writes = parts.tensors, parts.groups, writes
        for group in self._groups:
            self.part = self.part * group.size + group.rank
        self._cuts = {parts.tensors[name]: cuts for name, cuts in parts.cuts.items()}

    def own_weight(self, name: str, weight: Tensor) -> Tensor:
        return self._parts.get(name, weight)

    def whole_shape(self, own: Tensor) -> torch.Size:
        shape = own.shape
        for cut in reversed(self._cuts_of(own)):
            shape = cut.whole_shape(shape)
        return shape

    def counts(self, own: Tensor) -> bool:
        cut_among = [cut.sharing for cut in self._cuts_of(own)]
        return all(group in cut_among or group.rank == 0 for group in self._groups)

    def whole(self, value: Tensor, own: Tensor) -> Tensor:
        if (axes := value.dim() - own.dim()) >= 0:
            for cut in reversed(self._cuts_of(own)):
                value = cut.whole(value, axes)
        return value

    def own(self, value: Tensor, own: Tensor) -> Tensor:
        if (axes := value.dim() - own.dim()) >= 0:
            for cut in self._cuts_of(own):
                value = cut.own(value, axes)
        return value

    def box(self, value: Tensor, own: Tensor) -> Box | None:
        axes = value.dim() - own.dim()
        if axes < 0 or not self._cuts_of(own):
            return None
        start = [0] * value.dim()
        for cut in self._cuts_of(own):
            axis, row = cut.start(axes)
            start[axis] += row
        return Box(tuple(start), (*value.shape[:axes], *self.whole_shape(own)))

    def read(self, stored: StoredTensor, own: Tensor) -> Tensor:
        axes = stored.dim() - own.dim()
        shape = torch.Size((*stored.shape[:axes], *own.shape)) if axes >= 0 else stored.shape
        box = self.box(own.new_empty(shape, device="meta"), own)
        return stored.whole() if box is None else stored.read(box.start, shape)

    def gather(self, numbers: Tensor) -> Tensor:
        gathered = numbers[None]
        for group in self._groups:
            gathered = group.gather(gathered).flatten(0, 1)
        return gathered

    def _cuts_of(self, own: Tensor) -> Sequence[Cut]:
        return self._cuts.get(own, ())
