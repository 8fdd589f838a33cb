"""What a model_type of Hugging Face's is to us: its settings and the names of its tensors, beside ours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveal.config import ModelConfig
from foveal.interop.huggingface.hf_config import HFConfig

NORM_EPSILON = 1e-5
"""Of every norm of ours."""


@dataclass(frozen=True)
class TensorMapping:
    """How one tensor of theirs holds ours: `names`, several one below the other, behind a change of shape."""

    names: tuple[str, ...]
    theirs: Callable[[Tensor], Tensor]
    ours: Callable[[Tensor], Tensor]


def unchanged(*names: str) -> TensorMapping:
    return TensorMapping(names, lambda ours: ours, lambda theirs: theirs)


def transposed(*names: str) -> TensorMapping:
    """GPT-2's Conv1D keeps (inputs, outputs)."""
    return TensorMapping(names, Tensor.t, Tensor.t)


def depthwise_kernel(name: str) -> TensorMapping:
    """A convolution of each channel by itself: (E, K), there (E, 1, K)."""
    return TensorMapping((name,), lambda ours: ours[:, None], lambda theirs: theirs[:, 0])


def broadcast_vector(name: str) -> TensorMapping:
    """A vector (D,), there (1, 1, D)."""
    return TensorMapping((name,), lambda ours: ours[None, None], lambda theirs: theirs[0, 0])


@dataclass(frozen=True)
class ModelFamily:
    """A model_type.

    `top_level` and `per_layer` map their names to ours. Theirs stand behind `prefix`, those of layer i behind `layers`
    and the number too; ours are in the block {first}, and {second} where a layer is two blocks of ours.
    `from_hf_config` gives ModelConfig's tables and the context, `to_hf_config` is the inverse. A value that `from_hf_config`
    does not give is ModelConfig's default; those of `ignored_settings` mean nothing to the model's outputs.
    """

    model_type: str
    architecture: str
    mixer: str
    prefix: str
    embedding: str
    head: str
    layers: str
    blocks: int
    top_level: Mapping[str, TensorMapping]
    per_layer: Mapping[str, TensorMapping]
    ignored_settings: frozenset[str]
    from_hf_config: Callable[[HFConfig], tuple[dict[str, Any], int]]
    to_hf_config: Callable[[ModelConfig, int], dict[str, Any]]

    def tensor_mappings(self, layers: int, tied: bool) -> Iterator[tuple[str, TensorMapping]]:
        """Each name of theirs in a model of so many layers, and what it holds."""
        yield self.prefix + self.embedding, unchanged("embedding.table")
        for name, held in self.top_level.items():
            yield self.prefix + name, held
        for i in range(layers):
            first = self.blocks * i
            for name, held in self.per_layer.items():
                names = tuple(ours.format(first=first, second=first + 1) for ours in held.names)
                yield (
                    f"{self.prefix}{self.layers}.{i}.{name}",
                    TensorMapping(tuple(f"stack.blocks.{ours}" for ours in names), held.theirs, held.ours),
                )
        if not tied:
            yield self.head, unchanged("projection.weight")

    def to_hf_weights(self, ours: Mapping[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
        return {
            name: held.theirs(torch.cat([ours[part] for part in held.names])).contiguous()
            for name, held in self.tensor_mappings(layers, tied)
        }

    def from_hf_weights(self, theirs: Mapping[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
        return {
            part: tensor.contiguous()
            for name, held in self.tensor_mappings(layers, tied)
            for part, tensor in zip(held.names, held.ours(theirs[name]).chunk(len(held.names)), strict=True)
        }
