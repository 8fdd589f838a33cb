"""What a model_type of Hugging Face's is to us: its settings and the names of its tensors, beside ours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveal.config import ModelConfig
from foveal.interop.huggingface.hf_config import Settings

EPSILON = 1e-5
"""Of every norm of ours."""


@dataclass(frozen=True)
class Held:
    """How one tensor of theirs holds ours: `names`, several one below the other, behind a change of shape."""

    names: tuple[str, ...]
    theirs: Callable[[Tensor], Tensor]
    ours: Callable[[Tensor], Tensor]


def same(*names: str) -> Held:
    return Held(names, lambda ours: ours, lambda theirs: theirs)


def transposed(*names: str) -> Held:
    """GPT-2's Conv1D keeps (inputs, outputs)."""
    return Held(names, Tensor.t, Tensor.t)


def depthwise(name: str) -> Held:
    """A convolution of each channel by itself: (E, K), there (E, 1, K)."""
    return Held((name,), lambda ours: ours[:, None], lambda theirs: theirs[:, 0])


def spread(name: str) -> Held:
    """A vector (D,), there (1, 1, D)."""
    return Held((name,), lambda ours: ours[None, None], lambda theirs: theirs[0, 0])


@dataclass(frozen=True)
class Family:
    """A model_type.

    `once` and `layer` map their names to ours. Theirs stand behind `prefix`, those of layer i behind `layers`
    and the number too; ours are in the block {first}, and {second} where a layer is two blocks of ours.
    `to_ours` gives ModelConfig's tables and the context, `to_theirs` is the inverse. A value that `to_ours`
    does not give is ModelConfig's default; those of `free` mean nothing to the model's outputs.
    """

    model_type: str
    architecture: str
    mixer: str
    prefix: str
    embedding: str
    head: str
    layers: str
    blocks: int
    once: Mapping[str, Held]
    layer: Mapping[str, Held]
    free: frozenset[str]
    to_ours: Callable[[Settings], tuple[dict[str, Any], int]]
    to_theirs: Callable[[ModelConfig, int], dict[str, Any]]

    def held(self, layers: int, tied: bool) -> Iterator[tuple[str, Held]]:
        """Each name of theirs in a model of so many layers, and what it holds."""
        yield self.prefix + self.embedding, same("embedding.table")
        for name, held in self.once.items():
            yield self.prefix + name, held
        for i in range(layers):
            first = self.blocks * i
            for name, held in self.layer.items():
                names = tuple(ours.format(first=first, second=first + 1) for ours in held.names)
                yield (
                    f"{self.prefix}{self.layers}.{i}.{name}",
                    Held(tuple(f"stack.blocks.{ours}" for ours in names), held.theirs, held.ours),
                )
        if not tied:
            yield self.head, same("projection.weight")

    def weights_to_theirs(self, ours: Mapping[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
        return {
            name: held.theirs(torch.cat([ours[part] for part in held.names])).contiguous()
            for name, held in self.held(layers, tied)
        }

    def weights_to_ours(self, theirs: Mapping[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
        return {
            part: tensor.contiguous()
            for name, held in self.held(layers, tied)
            for part, tensor in zip(held.names, held.ours(theirs[name]).chunk(len(held.names)), strict=True)
        }
