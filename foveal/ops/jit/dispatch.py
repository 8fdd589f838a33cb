"""The choice of the path for an operation, from shapes, dtypes and devices only, never from a tensor's
values."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_only_reference: ContextVar[Callable[[str], bool]] = ContextVar("only_reference", default=lambda _: False)
_record: ContextVar[list[str] | None] = ContextVar("record", default=None)


def use_fast_path(operation: str, fast: str, usable: bool) -> bool:
    """Return True if the fast path, called `fast`, computes `operation`; False for the reference."""
    if torch.compiler.is_compiling():  # it cannot trace the look-ups
        return usable
    chosen = usable and not _only_reference.get()(operation)
    record = _record.get()
    if record is not None:
        record.append(f"{operation}:{fast if chosen else 'reference'}")
    return chosen


@contextmanager
def reference_only(*operations: str, besides: Collection[str] = ()) -> Iterator[None]:
    """Return a context in which the named operations, or all `besides` some if none is named, use the
    reference."""
    token = _only_reference.set(lambda name: name in operations if operations else name not in besides)
    try:
        yield
    finally:
        _only_reference.reset(token)


@contextmanager
def record_paths() -> Iterator[list[str]]:
    """Return a context with a list that gains an entry `operation:path` for every choice."""
    paths: list[str] = []
    token = _record.set(paths)
    try:
        yield paths
    finally:
        _record.reset(token)
