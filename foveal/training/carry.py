"""The carries of truncated backpropagation: the states of rows that go on in the next step."""

from typing import Any

import torch
from torch import Tensor

from foveal.core.state import State, detach_state, finite_rows, map_state, reset_rows
from foveal.training.protocols import Batch, Objective


def starting_carry(objective: Objective, batch: Batch, carry: State) -> State:
    """Return the initial carry of a batch. Rows that begin a stream are reset to the initial state."""
    if batch.stream_starts is None:
        return None
    if carry is None:
        return objective.start(batch)
    return (
        reset_rows(carry, batch.stream_starts, objective.start(batch)) if batch.stream_starts.any() else carry
    )


def detach_carry(carry: State) -> State:
    """Return the carry detached from its history, in new storage.

    A view would keep its whole chunk in memory. The memory layout of a view would also differ from the layout
    after a resume, and then the last bit of a product may differ.
    """

    def leaf(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        own_storage = value.is_contiguous() and value.untyped_storage().nbytes() == value.nbytes
        return value if own_storage else value.clone(memory_format=torch.contiguous_format)

    return map_state(leaf, detach_state(carry))


def reset_nonfinite_rows(objective: Objective, batch: Batch | None, carry: State) -> State:
    """Reset the rows of the carry that are not finite."""
    if batch is None or batch.stream_starts is None or carry is None:
        return None
    nonfinite = ~finite_rows(carry, len(batch.stream_starts))
    return detach_carry(reset_rows(carry, nonfinite, objective.start(batch))) if nonfinite.any() else carry
