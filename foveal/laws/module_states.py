"""Modules with a state: how they are called, and which entries of a state count."""

from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.self_attention import SelfAttention


def run_module(
    module: nn.Module, x: Tensor, state: object = None, lengths: Tensor | None = None
) -> tuple[Tensor, Any]:
    """Return `y, state` of a mixer, a block or a stack."""
    y, state, *_ = module(x, state, lengths=lengths)
    return y, state


def state_entries(module: Any, state: Any) -> list[Tensor]:
    """Return the valid entries of a state, so that equivalent states compare equal.

    A mixer whose state has entries that mean nothing yet, such as the free places of a cache, returns the
    others from its method `state_entries(state)`.
    """
    if state is None:
        return []
    if isinstance(module, Stack):
        parts = [e for b, s in zip(module.blocks, state["blocks"], strict=True) for e in state_entries(b, s)]
        return parts + ([state["count"]] if "count" in state else [])
    if isinstance(module, Block):
        return state_entries(module.mixer, state)
    if isinstance(module, SelfAttention):
        return _attention_entries(module, state)
    if hasattr(module, "state_entries"):
        entries: list[Tensor] = module.state_entries(state)
        return entries
    return [part.long() if part.dtype == torch.bool else part for part in _tensors(state)]


def _attention_entries(module: SelfAttention, state: Any) -> list[Tensor]:
    count, cached = state["count"], (state["keys"], state["values"])
    if module.window:
        kept = [min(int(n), module.window - 1) for n in count]
        rows = [(part[b, part.shape[1] - k :]) for part in cached for b, k in enumerate(kept)]
    else:
        rows = [part[b, :n] for part in cached for b, n in enumerate(count)]
    return [count, *rows]


def _tensors(state: Any) -> list[Tensor]:
    """Return the tensors of a state, those of dicts in the order of their names."""
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, dict):
        return [tensor for name in sorted(state) for tensor in _tensors(state[name])]
    if isinstance(state, tuple | list):
        return [tensor for part in state for tensor in _tensors(part)]
    return []


def example_memory(width: int, dtype: torch.dtype) -> Memory:
    """Return a memory of four rows: full, short, with holes, and empty. NaN where the mask is False."""
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()
    vectors = torch.randn(4, 5, width, dtype=dtype).masked_fill(~mask[:, :, None], torch.nan)
    return Memory(vectors.requires_grad_(), mask, torch.randn(4, width, dtype=dtype, requires_grad=True))
