"""Which path computes an operation: chosen on Python facts only, never on a tensor's values."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_only_reference: ContextVar[Callable[[str], bool]] = ContextVar("only_reference", default=lambda _: False)
_record: ContextVar[list[str] | None] = ContextVar("record", default=None)


def use_fast_path(operation: str, fast: str, usable: bool) -> bool:
    """True if the path called `fast` is to compute `operation`, False for the reference."""
    taken = usable and not _only_reference.get()(operation)
    record = _record.get()
    if record is not None:
        record.append(f"{operation}:{fast if taken else 'reference'}")
    return taken


@contextmanager
def reference_only(*operations: str) -> Iterator[None]:
    """Inside, every operation, or each that is named, runs as its equation is written."""
    token = _only_reference.set(lambda name: not operations or name in operations)
    try:
        yield
    finally:
        _only_reference.reset(token)


@contextmanager
def record_paths() -> Iterator[list[str]]:
    """Inside, the list gains one `operation:path` for every choice."""
    paths: list[str] = []
    token = _record.set(paths)
    try:
        yield paths
    finally:
        _record.reset(token)
