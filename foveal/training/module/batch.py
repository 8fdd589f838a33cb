"""A user's batch of any type: its rows, its place in memory, and its content as a hash."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveal.core.errors import UserError

SAMPLED_NUMBERS = 4096
WeightFunction = Callable[[Any], float]
"""Returns the weight of a batch in means."""


@dataclass(frozen=True)
class ModuleBatch:
    """A batch as the trainer sees it."""

    value: Any
    """What the user's loader gave, on the device of the module."""
    rows: int
    weight: float
    """The weight of the batch in means over several batches."""
    weigh: WeightFunction | None = None
    """The function that gives the weight; None for the number of rows."""
    fact: str = ""
    """What several processes compare, which have to have the same batches; empty in a single process."""
    stream_starts: None = None

    @property
    def tokens(self) -> int:
        """The number of rows, for speed and for budgets."""
        return self.rows

    @property
    def row_count(self) -> int:
        """The number of rows that can be cut."""
        return self.rows

    def cut(self, rows: slice) -> "ModuleBatch":
        """Return some rows of the batch.

        Raises: UserError: the arrays of the batch have different numbers of rows.
        """
        value = cut_rows(self.value, rows, self.rows)
        count = rows.stop - rows.start
        return ModuleBatch(value, count, _checked_weight(value, count, self.weigh), self.weigh)


def make_batch(
    value: Any, device: torch.device, weight: WeightFunction | None, is_compared: bool = False
) -> ModuleBatch:
    """Return a user's batch, moved to a device. Its weight is its number of rows if `weight` is None.

    Raises: UserError: the weight is no number from 0 on.
    """
    rows = count_rows(value)
    fact = content_hash(map(_sample, leaves(value))) if is_compared else ""
    return ModuleBatch(to_device(value, device), rows, _checked_weight(value, rows, weight), weight, fact)


def _sample(leaf: Any) -> Any:
    """Return some of the numbers of an array, so that no step waits for a hash of all."""
    if isinstance(leaf, (Tensor, np.ndarray)) and getattr(leaf, "layout", torch.strided) == torch.strided:
        flat = leaf.reshape(-1)
        return flat[:: 1 + len(flat) // SAMPLED_NUMBERS]
    return leaf


def _checked_weight(value: Any, rows: int, weigh: WeightFunction | None) -> float:
    """Return the weight of a batch.

    Raises: UserError: it is no number from 0 on.
    """
    number = rows if weigh is None else weigh(value)
    try:
        weight = float(number)
    except (TypeError, ValueError):
        weight = nan
    if not 0 <= weight < inf:
        raise UserError(f"weight: expected a number from 0 on for each batch, not {number!r}")
    return weight


def count_rows(value: Any) -> int:
    """Return the rows of a batch: the length of its first array, or of a list without arrays; else 1."""
    first = next((array for array in leaves(value) if getattr(array, "ndim", 0) > 0), None)
    if first is not None:
        return int(first.shape[0])
    return len(value) if isinstance(value, list) else 1


def cut_rows(value: Any, rows: slice, count: int) -> Any:
    """Return some rows of all arrays in a batch of `count` rows, and of lists without arrays of that length.
    Other values are those of the whole batch.

    Raises: UserError: an array has another number of rows.
    """
    if isinstance(value, (Tensor, np.ndarray)) and value.ndim:
        if len(value) != count:
            raise UserError(
                f"batches of {count} rows with an array of {len(value)} can't be shared by several "
                "processes: give every array a row for each example, or train in one process"
            )
        return value[rows]
    if isinstance(value, Mapping):
        return {key: cut_rows(part, rows, count) for key, part in value.items()}
    if isinstance(value, list) and len(value) == count and not any(_arrays(value)):
        return value[rows]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cut_rows(part, rows, count) for part in value))
    if isinstance(value, (tuple, list)):
        return type(value)(cut_rows(part, rows, count) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: cut_rows(getattr(value, field.name), rows, count) for field in fields(value)}
        return replace(value, **parts)
    return value


def _arrays(value: Any) -> Iterator[bool]:
    return (getattr(leaf, "ndim", 0) > 0 for leaf in leaves(value))


def to_device(value: Any, device: torch.device) -> Any:
    """Return a batch with all of its tensors on a device. On a CPU, batches stay as they are.

    Objects of unknown types with a method `to`, as libraries have for their batches, are moved by it.
    """
    if device.type == "cpu":
        return value
    if isinstance(value, Tensor) or (hasattr(value, "to") and not isinstance(value, type)):
        return value.to(device)
    if isinstance(value, dict):
        return {key: to_device(part, device) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_device(part, device) for part in value))
    if isinstance(value, (tuple, list)):
        return type(value)(to_device(part, device) for part in value)
    return value


def copy_containers(value: Any) -> Any:
    """Return a batch with new dicts and lists around the same tensors, so that a function that changes them
    changes no other use of the batch."""
    if type(value) is dict:
        return {key: copy_containers(part) for key, part in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(copy_containers, value))
    return value


def leaves(value: Any) -> Iterator[Any]:
    """Yield everything in a nested batch that is no container."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    else:
        yield value


def content_hash(batch_leaves: Iterable[Any]) -> str:
    """Return a hash of the arrays, numbers and texts of a batch. Objects of other types do not count."""
    digest = hashlib.sha256()
    for leaf in batch_leaves:
        if isinstance(leaf, Tensor):
            plain = leaf.detach().cpu().to_dense() if leaf.layout != torch.strided else leaf.detach().cpu()
            digest.update(f"{plain.dtype}{list(plain.shape)}".encode())
            digest.update(plain.contiguous().flatten().view(torch.uint8).numpy().tobytes())
        elif isinstance(leaf, np.ndarray) and leaf.dtype != object:
            digest.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
        elif isinstance(leaf, (str, bytes, int, float, bool, type(None))):
            digest.update(repr(leaf).encode())
    return digest.hexdigest()
