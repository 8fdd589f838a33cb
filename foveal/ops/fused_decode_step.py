"""One new position of each row through the blocks of a Transformer: what writing a text asks for, at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.ops.activation import Activation
from foveal.ops.jit.code_cache import LANES
from foveal.ops.jit.dispatch import choose
from foveal.ops.jit.launch import Kernel, as_words

SHARE = 1 << 16
"""Weights, or numbers of keys, that are worth a task of their own.

Milliseconds of a step, layer by layer and in one piece, on an AMD EPYC (AVX2, two threads):

| layers, width | 1 row | 4 rows | 8 rows |
|---|---|---|---|
| 12, 768 | 21.7, 14.4 | 33, 21.8 | 53, 38 |
| 4, 144 | 2.9, 0.6 | 3.5, 0.8 | 3.8, 1.1 |
"""
KNOWN: tuple[Activation, ...] = ("gelu", "gelu-tanh", "relu", "silu")
"""Activations, in the kernel's order."""

_forward = Kernel("fused_decode_step", "forward")


class Norm(NamedTuple):
    """Layer normalisation, or without a bias that by the root mean square."""

    gain: Float[Tensor, " D"]
    bias: Float[Tensor, " D"] | None
    epsilon: float


class Affine(NamedTuple):
    """`W x + b`."""

    weight: Float[Tensor, "M K"]
    bias: Float[Tensor, " M"] | None


@dataclass(frozen=True)
class Weights:
    """A block `x + output(attention(norm(x)))`, then `x + contract(act(expand(norm(x))))`; with a `gate` the
    hidden units are `silu(gate(x)) * expand(x)`."""

    attention_norm: Norm
    query: Affine
    key: Affine
    value: Affine
    output: Affine
    feedforward_norm: Norm
    expand: Affine
    gate: Affine | None
    contract: Affine
    activation: Activation
    heads: int
    rotary: bool

    @cached_property
    def tensors(self) -> list[Tensor]:
        return [value for part in self._layers() for value in part if isinstance(value, Tensor)]

    @cached_property
    def words(self) -> list[int]:
        """The kernel's arguments, for as long as the tensors lie where they are."""
        return as_words(value for part in self._layers() for value in part)

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """What all blocks of a call have to have in common."""
        sizes = (self.query.weight.shape, self.expand.weight.shape, self.heads)
        return (*sizes, self.attention_norm.bias is None, self.rotary, self.gate is None, self.activation)

    def _layers(self) -> list[tuple[Tensor | float | None, ...]]:
        attention = (self.attention_norm, self.query, self.key, self.value, self.output)
        return [*attention, self.feedforward_norm, self.expand, self.gate or (None, None), self.contract]


class Cache(NamedTuple):
    """What self-attention has seen, in slots, and of how many positions of each row."""

    keys: Float[Tensor, "R C H K"]
    values: Float[Tensor, "R C H K"]
    seen: Int[Tensor, " R"]


def known(block: Weights) -> bool:
    """Whether the kernel can compute a block with these weights, as they are and lie now."""
    sizes = (block.query.weight.shape[1], block.expand.weight.shape[0])
    return (
        all(size % LANES == 0 for size in sizes)
        and block.activation in KNOWN
        and all(part.is_contiguous() for part in block.tensors)
        and _forward.usable(*block.tensors)
    )


def usable(x: Float[Tensor, "R 1 D"], blocks: Sequence[Weights], caches: Sequence[Cache]) -> bool:
    """Whether `transformer_step` can compute with these and `known` blocks, and is to."""
    R, _, D = x.shape
    first, slots, numbers = blocks[0], caches[0].keys.shape, [part for cache in caches for part in cache[:2]]
    fits = (
        all(block.kind == first.kind for block in blocks)
        and all(part.shape == slots for part in numbers)
        and (slots[0], *slots[2:]) == (R, first.heads, D // first.heads)
        and all(seen.shape == (R,) and seen.dtype == torch.int64 for _, _, seen in caches)
        and all(part.is_contiguous() for cache in caches for part in cache)
    )
    return choose("transformer", "step", fits and _forward.usable(x, *numbers))


def transformer_step(
    x: Float[Tensor, "R 1 D"], blocks: Sequence[Weights], caches: Sequence[Cache], filled: int
) -> Float[Tensor, "R 1 D"]:
    """The last block's output.

    Row r's new key and value are written into slot `seen[r]` of each cache, which must have room for them,
    and `seen` goes up; then none is more than `filled`.
    """
    y, first = x.clone(memory_format=torch.contiguous_format), blocks[0]
    R, _, D = x.shape
    E, H, room = first.expand.weight.shape[0], first.heads, caches[0].keys.shape[1]
    scratch = x.new_empty(R * (7 * D + 2 * E + H * -(-room // LANES) * LANES))
    products, heads = max(1, D * D // SHARE), min(H, max(1, D * filled // SHARE))
    expand, contract = min(E // LANES, max(1, D * E // SHARE)), max(1, D * E // SHARE)
    tasks = (R, 3 * products, R * heads, products, R, expand, contract)
    centred = first.attention_norm.bias is not None
    words: list[Tensor | int] = []
    for block, cache in zip(blocks, caches, strict=True):
        words += [*cache, *block.words]
    _forward(
        len(blocks) * sum(tasks),
        0,
        *tasks,
        *(R, D, H, E, room),
        *(centred, first.rotary, KNOWN.index(first.activation), first.gate is not None),
        *(y, scratch),
        *words,
    )
    return y
