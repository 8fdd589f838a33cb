"""Activation checkpointing: a block keeps its inputs alone, and is computed again in the backward pass (Chen
et al. 2016)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from torch import Tensor

from foveal.core.state import State

BlockOutput = tuple[Tensor, State, dict[str, Tensor]]
_recomputes: ContextVar[bool] = ContextVar("recomputes", default=False)
_keeps_states: ContextVar[bool] = ContextVar("keeps_states", default=True)


@contextmanager
def recomputing(recomputes: bool) -> Iterator[None]:
    """Return a context in which blocks that `run_block` computes are computed again in the backward pass."""
    token = _recomputes.set(recomputes)
    try:
        yield
    finally:
        _recomputes.reset(token)


@contextmanager
def keeping_states(keeps: bool) -> Iterator[None]:
    """Return a context in which the states that blocks return may be read, or are not: keys and values that
    nobody reads would stay in memory until the end of the forward pass.

    Blocks that are computed again then return empty states, which fit no mixer.
    """
    token = _keeps_states.set(keeps)
    try:
        yield
    finally:
        _keeps_states.reset(token)


def keeps_states() -> bool:
    """Return whether the states that blocks return now may be read. torch.compile can't trace the context."""
    return torch.compiler.is_compiling() or _keeps_states.get()


def run_block(block: Callable[..., BlockOutput], x: Tensor, state: State, lengths: Any) -> BlockOutput:
    """Return the output of a block. Computed again, it draws the same noise, so its gradients have the same
    bits. Code that torch.compile traces keeps all blocks: it can't read the context."""
    if torch.compiler.is_compiling() or not _recomputes.get() or not torch.is_grad_enabled():
        return block(x, state, lengths=lengths)
    from torch.utils.checkpoint import checkpoint

    compute = block if keeps_states() else partial(_without_state, block)
    result: BlockOutput = checkpoint(compute, x, state, lengths=lengths, use_reentrant=False)
    return result


def _without_state(block: Callable[..., BlockOutput], x: Tensor, state: State, lengths: Any) -> BlockOutput:
    y, _, aux = block(x, state, lengths=lengths)
    return y, {}, aux
