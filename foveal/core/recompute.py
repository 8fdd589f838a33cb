"""Activation checkpointing: a block keeps its inputs alone, and is computed again in the backward pass (Chen
et al. 2016)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")
_recomputes: ContextVar[bool] = ContextVar("recomputes", default=False)


@contextmanager
def recomputing(recomputes: bool) -> Iterator[None]:
    """Return a context in which blocks that `run_block` computes are computed again in the backward pass."""
    token = _recomputes.set(recomputes)
    try:
        yield
    finally:
        _recomputes.reset(token)


def run_block(block: Callable[..., Result], *inputs: Any, lengths: Any) -> Result:
    """Return the output of a block. Computed again, it draws the same noise, so its gradients have the same
    bits."""
    if not _recomputes.get() or not torch.is_grad_enabled():
        return block(*inputs, lengths=lengths)
    from torch.utils.checkpoint import checkpoint

    result: Result = checkpoint(block, *inputs, lengths=lengths, use_reentrant=False)
    return result
