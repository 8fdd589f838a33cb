"""A fused decoding step: one new position per row through all blocks of a Transformer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.ops.activation import Activation
from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, pack_arguments

WEIGHTS_PER_TASK = 1 << 16
"""Weights, or elements of keys, that justify a task of their own.

Milliseconds of a step, layer by layer and fused, on an AMD EPYC (AVX2, two threads):

| layers, width | 1 row | 4 rows | 8 rows |
|---|---|---|---|
| 12, 768 | 21.7, 14.4 | 33, 21.8 | 53, 38 |
| 4, 144 | 2.9, 0.6 | 3.5, 0.8 | 3.8, 1.1 |
"""
SUPPORTED_ACTIVATIONS: tuple[Activation, ...] = ("gelu", "gelu-tanh", "relu", "silu")
"""Activations, in the kernel's order."""

_forward = Kernel("fused_decode_step", "forward")


class NormWeights(NamedTuple):
    """Weights of layer normalization, or of RMS normalization if there is no bias."""

    gain: Float[Tensor, " D"]
    bias: Float[Tensor, " D"] | None
    epsilon: float


class LinearWeights(NamedTuple):
    """Weights of a linear layer, `W x + b`."""

    weight: Float[Tensor, "M K"]
    bias: Float[Tensor, " M"] | None


@dataclass(frozen=True)
class BlockWeights:
    """Weights of a block `x + output(attention(norm(x)))`, then `x + contract(act(expand(norm(x))))`.

    With a `gate` the hidden units are `silu(gate(x)) * expand(x)`.
    """

    attention_norm: NormWeights
    query: LinearWeights
    key: LinearWeights
    value: LinearWeights
    output: LinearWeights
    feedforward_norm: NormWeights
    expand: LinearWeights
    gate: LinearWeights | None
    contract: LinearWeights
    activation: Activation
    heads: int
    rotary: bool

    @cached_property
    def tensors(self) -> list[Tensor]:
        """All tensors of the block."""
        return [value for part in self._layers() for value in part if isinstance(value, Tensor)]

    @cached_property
    def packed_arguments(self) -> list[int]:
        """The kernel's arguments, valid as long as the tensors stay at their addresses."""
        return pack_arguments(value for part in self._layers() for value in part)

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """The properties that all blocks of a call must have in common."""
        sizes = (self.query.weight.shape, self.expand.weight.shape, self.heads)
        return (*sizes, self.attention_norm.bias is None, self.rotary, self.gate is None, self.activation)

    def _layers(self) -> list[tuple[Tensor | float | None, ...]]:
        attention = (self.attention_norm, self.query, self.key, self.value, self.output)
        return [*attention, self.feedforward_norm, self.expand, self.gate or (None, None), self.contract]


class KVCache(NamedTuple):
    """The keys and values of self-attention in slots, and the number of filled slots of each row."""

    keys: Float[Tensor, "R C H K"]
    values: Float[Tensor, "R C H K"]
    lengths: Int[Tensor, " R"]


def block_supported(block: BlockWeights) -> bool:
    """Return whether the kernel can compute a block with these weights, in their present memory layout."""
    sizes = (block.query.weight.shape[1], block.expand.weight.shape[0])
    return (
        all(size % LANES == 0 for size in sizes)
        and block.activation in SUPPORTED_ACTIVATIONS
        and all(part.is_contiguous() for part in block.tensors)
        and _forward.usable(*block.tensors)
    )


def fused_decode_usable(
    x: Float[Tensor, "R 1 D"], blocks: Sequence[BlockWeights], caches: Sequence[KVCache]
) -> bool:
    """Return whether `fused_decode_step` should compute with these inputs.

    All `blocks` must be `block_supported`.
    """
    R, _, D = x.shape
    first, slots, tensors = (
        blocks[0],
        caches[0].keys.shape,
        [tensor for cache in caches for tensor in cache[:2]],
    )
    shapes_match = (
        all(block.signature == first.signature for block in blocks)
        and all(tensor.shape == slots for tensor in tensors)
        and (slots[0], *slots[2:]) == (R, first.heads, D // first.heads)
        and all(lengths.shape == (R,) and lengths.dtype == torch.int64 for _, _, lengths in caches)
        and all(tensor.is_contiguous() for cache in caches for tensor in cache)
    )
    return use_fast_path("fused_decode", "step", shapes_match and _forward.usable(x, *tensors))


def fused_decode_step(
    x: Float[Tensor, "R 1 D"], blocks: Sequence[BlockWeights], caches: Sequence[KVCache], filled: int
) -> Float[Tensor, "R 1 D"]:
    """Return the output of the last block.

    The new key and value of row r are written into slot `lengths[r]` of each cache, which must have a free
    slot. Each length is then incremented. No length may exceed `filled`.
    """
    y, first = x.clone(memory_format=torch.contiguous_format), blocks[0]
    R, _, D = x.shape
    E, H, capacity = first.expand.weight.shape[0], first.heads, caches[0].keys.shape[1]
    scratch = x.new_empty(R * (7 * D + 2 * E + H * -(-capacity // LANES) * LANES))
    products, heads = max(1, D * D // WEIGHTS_PER_TASK), min(H, max(1, D * filled // WEIGHTS_PER_TASK))
    expand, contract = min(E // LANES, max(1, D * E // WEIGHTS_PER_TASK)), max(1, D * E // WEIGHTS_PER_TASK)
    tasks = (R, 3 * products, R * heads, products, R, expand, contract)
    centered = first.attention_norm.bias is not None
    cache_arguments: list[Tensor | int] = []
    for block, cache in zip(blocks, caches, strict=True):
        cache_arguments += [*cache, *block.packed_arguments]
    _forward(
        len(blocks) * sum(tasks),
        0,
        *tasks,
        *(R, D, H, E, capacity),
        *(centered, first.rotary, SUPPORTED_ACTIVATIONS.index(first.activation), first.gate is not None),
        *(y, scratch),
        *cache_arguments,
    )
    return y
