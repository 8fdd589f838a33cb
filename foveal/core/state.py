"""State trees, which mixers carry along the sequence, and the functions that apply to every state tree.

A state is a tree (dict, tuple or list). Its leaves are tensors with the batch as first axis, Python numbers
that hold for every row alike (such as an upper bound on the fill of a cache), or None (no state). The hidden
vector of a recurrent cell and the keys and values of attention have the same form. So beam search, streaming
and truncated backpropagation need only these functions.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

State = Any
"""A tree of tensors (B, ...), numbers and None."""
MEMORY_PREFIX = "memory_"
"""Prefix of the names of entries that are computed from a memory once and stay the same."""


def map_state(leaf: Callable[..., Any], state: State, *others: State) -> State:
    """Return `state` with `leaf` applied to every leaf, and to the corresponding leaves of `others`."""
    if isinstance(state, dict):
        return {name: map_state(leaf, state[name], *(o[name] for o in others)) for name in state}
    if isinstance(state, (tuple, list)):
        return type(state)(map_state(leaf, *parts) for parts in zip(state, *others, strict=True))
    return None if state is None else leaf(state, *others)


def select_rows(state: State, rows: Int[Tensor, " R"]) -> State:
    """Return the state of `rows`, in their order, in fresh storage. Rows may repeat.

    Beam search uses this, and generation uses it to drop finished rows.
    """
    return map_state(lambda leaf: leaf.index_select(0, rows) if isinstance(leaf, Tensor) else leaf, state)


def reorder(state: State, rows: Int[Tensor, " R"]) -> State:
    """Return `select_rows` for rows that continue rows of the same source.

    Entries whose names begin with `memory_` are equal in such rows, so they are not copied.
    """
    if isinstance(state, dict):
        return {
            name: part if name.startswith(MEMORY_PREFIX) else reorder(part, rows)
            for name, part in state.items()
        }
    if isinstance(state, (tuple, list)):
        return type(state)(reorder(part, rows) for part in state)
    return select_rows(state, rows)


def detach_state(state: State) -> State:
    """Return the state detached from its history, as at the boundary of truncated backpropagation."""
    return map_state(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, state)


def reset_rows(state: State, rows: Bool[Tensor, " B"], start: State) -> State:
    """Return `state` with the rows that are True in `rows` reset to `start`, an initial state of the same
    batch.

    Gradients flow into `start`, so a learned initial state continues to learn. A leaf with a capacity (axis 1
    of a cache) may be shorter in `start`, and is then padded with zeros.
    """

    def leaf(now: Any, first: Any) -> Any:
        if not isinstance(now, Tensor):
            return max(now, first)
        missing = now.shape[1] - first.shape[1] if now.dim() > 1 else 0
        if missing > 0:
            first = F.pad(first, (0, 0) * (now.dim() - 2) + (0, missing))
        reset = rows.to(now.device).view(-1, *(1,) * (now.dim() - 1))
        return torch.where(reset, first.to(now.dtype), now)

    return map_state(leaf, state, start)


def finite_rows(state: State, batch: int) -> Bool[Tensor, " B"]:
    """Return True for the rows in which every number is finite."""
    finite = torch.ones(batch, dtype=torch.bool)

    def leaf(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            finite.logical_and_(value.detach().isfinite()[:, None].flatten(1).all(1).cpu())
        return value

    map_state(leaf, state)
    return finite


def pack(state: State) -> tuple[dict[str, Tensor], Any]:
    """Split a tree into named tensors and a JSON-ready skeleton, so that it can be stored without pickle."""
    tensors: dict[str, Tensor] = {}

    def walk(node: State) -> Any:
        if isinstance(node, dict):
            return {"dict": {name: walk(part) for name, part in node.items()}}
        if isinstance(node, (tuple, list)):
            return {type(node).__name__: [walk(part) for part in node]}
        if isinstance(node, Tensor):
            name = str(len(tensors))
            tensors[name] = node.detach().cpu().contiguous().clone()
            return {"tensor": name}
        return {"value": node}

    return tensors, walk(state)


def unpack(tensors: dict[str, Tensor], skeleton: Any) -> State:
    """Return the tree that `pack` split into tensors and skeleton."""
    ((kind, content),) = skeleton.items()
    if kind == "dict":
        return {name: unpack(tensors, part) for name, part in content.items()}
    if kind in ("tuple", "list"):
        parts = [unpack(tensors, part) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    return tensors[content] if kind == "tensor" else content
