"""What a layer reads of the whole batch while a step computes the batch in slots.

A step may cut a batch into slots of rows, and compute one slot after another, or on several processes. Batch
norm and the choice of the hardest rows depend on all rows. They read the other slots through `gather_slots`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Gather = Callable[[Tensor], Tensor]
"""Returns the tensors of all slots (S, ...), in the order of the slots, from the tensor of this slot (...).
All slots call it, with tensors of equal shapes."""


@dataclass(frozen=True)
class Slot:
    """The slot of a batch that is computed now."""

    index: int
    gather: Gather
    keeps_statistics: bool
    """Whether this slot updates the running statistics, of all the slots of this process."""


_current: Slot | None = None


def set_current_slot(slot: Slot | None) -> None:
    """Compute `slot` from now on; None leaves batches whole."""
    global _current
    _current = slot


def current_slot() -> Slot | None:
    """Return the slot that is computed now; None if the batch is whole."""
    return _current


def gather_slots(x: Float[Tensor, "..."]) -> Float[Tensor, "S ..."]:
    """Return the values `x` of all slots, with gradients to each of them. A whole batch is a single slot."""
    slot = current_slot()
    return x[None] if slot is None else _GatherSlots.apply(x, slot)  # type: ignore[no-untyped-call]


class _GatherSlots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, slot: Slot) -> Tensor:
        ctx.slot = slot
        return slot.gather(x.detach())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        by_slot = ctx.slot.gather(gradients[0].contiguous())
        return by_slot[:, ctx.slot.index].sum(0), None
