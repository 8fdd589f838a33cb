"""The slots of a step: rows of its batches, whose gradients are added up in one order on any number of
ranks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.state import State, map_state
from foveal.core.terminal_text import counted
from foveal.distributed.lockstep import run_slots
from foveal.distributed.tree import Gradients, Node, TreeSum, add_gradients
from foveal.distributed.world import ONE_PROCESS, World, own_slots
from foveal.training.protocols import Batch

Result = TypeVar("Result")


@dataclass(frozen=True)
class Slots:
    """Into how many slots each batch is cut, and which of them this process computes."""

    count: int = 1
    world: World = ONE_PROCESS

    @property
    def own(self) -> range:
        return own_slots(self.count, self.world.rank, self.world.size)

    def cut(self, batch: Batch) -> list[Any]:
        """Return the rows of each own slot; None for a slot without rows, of a batch with fewer rows than
        slots."""
        if self.count == 1:
            return [batch]
        return [batch.cut(part) if part.start < part.stop else None for part in self._row_slices(batch)]  # type: ignore[attr-defined]

    def cut_carry(self, carry: State, batch: Batch) -> list[State]:
        """Return the carry of each own slot, from that of the rows of all own slots."""
        if self.count == 1 or carry is None:
            return [carry] * len(self.own)
        parts = self._row_slices(batch)
        return [take_rows(carry, part.start - parts[0].start, part.stop - parts[0].start) for part in parts]

    def own_carry(self, whole: State) -> State:
        """Return the carry of the rows of all own slots, from that of all rows of a batch."""
        sizes: list[int] = []
        map_state(lambda leaf: sizes.append(len(leaf)) if isinstance(leaf, Tensor) else None, whole)
        if self.count == 1 or not sizes:
            return whole
        first, last = (slot_rows(sizes[0], self.count, slot) for slot in (self.own[0], self.own[-1]))
        return take_rows(whole, first.start, last.stop)

    def whole_carries(self, carries: list[State]) -> list[State]:
        """Return the carry of all rows of each micro-batch. All ranks call this together."""
        if self.world.processes == 1:
            return carries
        on_cpu = [
            map_state(lambda leaf: leaf.cpu() if isinstance(leaf, Tensor) else leaf, each) for each in carries
        ]
        of_ranks = self.world.join_carries(self.world.exchange(on_cpu))
        return [join_rows(each) for each in zip(*of_ranks, strict=True)]

    def seed(self, slot: int) -> tuple[int, ...]:
        """Return what the noise of a slot depends on, beside the step."""
        return () if self.count == 1 else (slot,)

    def _row_slices(self, batch: Batch) -> list[slice]:
        """Return the rows of each own slot."""
        return [slot_rows(count_rows(batch), self.count, slot) for slot in self.own]

    def run(self, compute: Callable[[int], Result], weights: Sequence[Tensor]) -> list[Result]:
        """Return what `compute` returns for each own slot, by its place among the own slots."""
        works = [lambda place=place: compute(place) for place in range(len(self.own))]
        return run_slots(works, self.own.start, self.count, weights, self.world)

    def sum(self, gradients: Sequence[Gradients], weights: Sequence[Tensor]) -> Gradients:
        """Return the sum of the gradients of all slots of all ranks, from those of the own slots."""
        tree = TreeSum(self.count, add_gradients)
        for slot, each in zip(self.own, gradients, strict=True):
            tree.add(Node(0, slot), each)
        return self.world.sum(tree, weights)

    def all(self, of_own: Sequence[Result]) -> list[Result]:
        """Return the values of all slots of all ranks, in order, from those of the own slots."""
        return [value for values in self.world.by_rank(self.world.exchange(list(of_own))) for value in values]


ONE_SLOT = Slots()


def slot_rows(rows: int, slots: int, slot: int) -> slice:
    """Return the rows of a slot. The numbers of rows of two slots differ by at most one."""
    return slice(slot * rows // slots, (slot + 1) * rows // slots)


def count_rows(batch: Any) -> int:
    """Return the number of rows of a batch that can be cut.

    Raises: UserError: it can't be cut.
    """
    rows = getattr(batch, "row_count", None)
    if rows is None:
        raise UserError("training.slots: these batches can't be cut into slots; use --slots 1 and one rank")
    return int(rows)


def describe_slots(count: int, batch: Any) -> str:
    """Return how the rows of a batch are cut into slots.

    Raises: UserError: the batch can't be cut.
    """
    rows = count_rows(batch)
    if rows < count:
        return (
            f"{count}, but a batch has {counted(rows, 'row')}, so {counted(count - rows, 'slot')} have none: "
            "larger batches, or fewer ranks, are faster"
        )
    each = (
        counted(rows // count, "row") if rows % count == 0 else f"{rows // count} or {-(-rows // count)} rows"
    )
    return f"{count} in a batch, of {each} each"


def take_rows(state: State, start: int, stop: int) -> State:
    """Return the state of some rows, in storage of its own."""
    return map_state(lambda leaf: leaf[start:stop].clone() if isinstance(leaf, Tensor) else leaf, state)


def join_rows(parts: Sequence[State]) -> State:
    """Return the state of the rows of several slots, or None if no slot has any. Of numbers, which are upper
    bounds, the largest counts."""
    states = [part for part in parts if part is not None]
    if len(states) <= 1:
        return states[0] if states else None

    def leaf(*values: Any) -> Any:
        return torch.cat(values) if isinstance(values[0], Tensor) else max(values)

    return map_state(leaf, states[0], *states[1:])


def reads_whole_batch(model: nn.Module, objective: object) -> bool:
    """Return whether a layer or the objective needs all rows of a batch, so that each slot needs at least one
    row."""
    parts = [*model.modules(), objective]
    return any(getattr(part, "reads_whole_batch", False) for part in parts)
