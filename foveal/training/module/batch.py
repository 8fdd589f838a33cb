"""A user's batch of any type: its rows, its place in memory, and its content as a hash."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from math import inf, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveal.core.errors import UserError

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
    stream_starts: None = None

    @property
    def tokens(self) -> int:
        """The number of rows, for speed and for budgets."""
        return self.rows


def make_batch(value: Any, device: torch.device, weight: WeightFunction | None) -> ModuleBatch:
    """Return a user's batch, moved to a device. Its weight is its number of rows if `weight` is None.

    Raises: UserError: the weight is no number from 0 on.
    """
    rows = count_rows(value)
    number = rows if weight is None else weight(value)
    try:
        share = float(number)
    except (TypeError, ValueError):
        share = nan
    if not 0 <= share < inf:
        raise UserError(f"weight: expected a number from 0 on for each batch, not {number!r}")
    return ModuleBatch(to_device(value, device), rows, share)


def count_rows(value: Any) -> int:
    """Return the rows of a batch: the length of its first array, or of a list without arrays; else 1."""
    first = next((array for array in leaves(value) if getattr(array, "ndim", 0) > 0), None)
    if first is not None:
        return int(first.shape[0])
    return len(value) if isinstance(value, list) else 1


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
