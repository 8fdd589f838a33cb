"""What a model_type of Hugging Face's is to us: its settings and the names of its tensors, beside ours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from foveal.config import ModelConfig
from foveal.interop.huggingface.hf_config import HFConfig

NORM_EPSILON = 1e-5
"""Of every norm of ours."""


@dataclass(frozen=True)
class TensorMapping:
    """How one Hugging Face tensor holds Foveal's: `names`, several one below the other, behind a change of
    shape."""

    names: tuple[str, ...]
    to_hf: Callable[[Tensor], Tensor]
    from_hf: Callable[[Tensor], Tensor]


def unchanged(*names: str) -> TensorMapping:
    return TensorMapping(names, lambda our_tensor: our_tensor, lambda hf_tensor: hf_tensor)


def transposed(*names: str) -> TensorMapping:
    """GPT-2's Conv1D keeps (inputs, outputs)."""
    return TensorMapping(names, Tensor.t, Tensor.t)


def depthwise_kernel(name: str) -> TensorMapping:
    """A convolution of each channel by itself: (E, K), there (E, 1, K)."""
    return TensorMapping((name,), lambda our_tensor: our_tensor[:, None], lambda hf_tensor: hf_tensor[:, 0])


def broadcast_vector(name: str) -> TensorMapping:
    """A vector (D,), there (1, 1, D)."""
    return TensorMapping(
        (name,), lambda our_tensor: our_tensor[None, None], lambda hf_tensor: hf_tensor[0, 0]
    )


@dataclass(frozen=True)
class ModelFamily:
    """A model_type.

    `top_level` and `per_layer` map Hugging Face names to Foveal names. Hugging Face's stand behind `prefix`,
    those of layer i behind `layers` and the number too; Foveal's are in the block {first}, and {second} where
    a layer is two blocks. `from_hf_config` gives ModelConfig's tables and the context, `to_hf_config` is the
    inverse. A value that `from_hf_config` does not give is ModelConfig's default; those of `ignored_settings`
    mean nothing to the model's outputs.
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
        """Each Hugging Face name in a model of so many layers, and what it holds."""
        yield self.prefix + self.embedding, unchanged("embedding.table")
        for name, mapping in self.top_level.items():
            yield self.prefix + name, mapping
        for i in range(layers):
            first = self.blocks * i
            for name, mapping in self.per_layer.items():
                names = tuple(our_name.format(first=first, second=first + 1) for our_name in mapping.names)
                yield (
                    f"{self.prefix}{self.layers}.{i}.{name}",
                    replace(mapping, names=tuple(f"stack.blocks.{our_name}" for our_name in names)),
                )
        if not tied:
            yield self.head, unchanged("projection.weight")

    def to_hf_weights(self, our_tensors: Mapping[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
        return {
            name: mapping.to_hf(torch.cat([our_tensors[part] for part in mapping.names])).contiguous()
            for name, mapping in self.tensor_mappings(layers, tied)
        }

    def from_hf_weights(self, hf_tensors: Mapping[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
        return {
            part: tensor.contiguous()
            for name, mapping in self.tensor_mappings(layers, tied)
            for part, tensor in zip(
                mapping.names, mapping.from_hf(hf_tensors[name]).chunk(len(mapping.names)), strict=True
            )
        }
