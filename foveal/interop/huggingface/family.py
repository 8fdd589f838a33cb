"""The description of a Hugging Face model_type: its settings and tensor names, mapped to Foveal's."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from foveal.config import ModelConfig
from foveal.interop.huggingface.hf_config import HFConfig

NORM_EPSILON = 1e-5
"""The epsilon of Foveal's norms."""


@dataclass(frozen=True)
class TensorMapping:
    """The conversion between a Hugging Face tensor and Foveal's tensors `names`.

    Several tensors are concatenated along the first axis, before `to_hf` and after `from_hf`.
    """

    names: tuple[str, ...]
    to_hf: Callable[[Tensor], Tensor]
    from_hf: Callable[[Tensor], Tensor]


def unchanged(*names: str) -> TensorMapping:
    """Return a mapping that changes no shape."""
    return TensorMapping(names, lambda our_tensor: our_tensor, lambda hf_tensor: hf_tensor)


def transposed(*names: str) -> TensorMapping:
    """Return the mapping to GPT-2's Conv1D, whose weights are (inputs, outputs)."""
    return TensorMapping(names, Tensor.t, Tensor.t)


def depthwise_kernel(name: str) -> TensorMapping:
    """Return the mapping of a depthwise convolution (E, K) to (E, 1, K)."""
    return TensorMapping((name,), lambda our_tensor: our_tensor[:, None], lambda hf_tensor: hf_tensor[:, 0])


def broadcast_vector(name: str) -> TensorMapping:
    """Return the mapping of a vector (D,) to (1, 1, D)."""
    return TensorMapping(
        (name,), lambda our_tensor: our_tensor[None, None], lambda hf_tensor: hf_tensor[0, 0]
    )


def plus_one(name: str) -> TensorMapping:
    """Return the mapping of a gain g to g - 1, which is stored where a norm multiplies by `1 + weight`."""
    return TensorMapping((name,), lambda our_tensor: our_tensor - 1, lambda hf_tensor: hf_tensor + 1)


@dataclass(frozen=True)
class ModelFamily:
    """A Hugging Face model_type.

    `top_level` and `per_layer` map Hugging Face names to Foveal's. Hugging Face's names start with `prefix`;
    the names in a layer continue with `layers` and the number of the layer. In Foveal's names, `{first}` is
    the layer's block. If a layer is two blocks, `{second}` is the second block. `from_hf_config` returns the
    tables of a `ModelConfig` and the context length. `to_hf_config` is the inverse. Settings that
    `from_hf_config` does not return have their defaults. The `ignored_settings` do not change the model's
    outputs.
    """

    model_type: str
    architecture: str
    mixer: str
    norm_placement: str
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
        """Yield the Hugging Face names of a model with this number of `layers`, and the mapping of each
        tensor."""
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
        """Return Foveal's tensors as Hugging Face's."""
        return {
            hf_name: mapping.to_hf(torch.cat([our_tensors[name] for name in mapping.names])).contiguous()
            for hf_name, mapping in self.tensor_mappings(layers, tied)
        }

    def from_hf_weights(self, hf_tensors: Mapping[str, Tensor], layers: int, tied: bool) -> dict[str, Tensor]:
        """Return Hugging Face's tensors as Foveal's."""
        return {
            name: tensor.contiguous()
            for hf_name, mapping in self.tensor_mappings(layers, tied)
            for name, tensor in zip(
                mapping.names, mapping.from_hf(hf_tensors[hf_name]).chunk(len(mapping.names)), strict=True
            )
        }
