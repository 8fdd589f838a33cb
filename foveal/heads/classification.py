"""The classification head: a Memory to one label."""

from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from foveal.core.memory import Memory
from foveal.core.tap import TappedModule
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.dropout import Dropout

HeadPooling = Literal["mean", "last", "max", "attention", "encoder"]


class ClassificationHead(TappedModule):
    """One vector pooled from the memory, dropout, and a projection to the classes.

    The poolings `mean`, `last` (in the order of the memory) and `max` read the valid vectors. `attention`
    weights each vector by `softmax_i(u . h_i)` with a learned query `u` (Yang et al. 2016). The query starts
    at zero, which makes the pooling a mean. `encoder` uses the encoder's summary. A row without valid vectors
    is pooled to zeros. The projection starts normal with standard deviation 0.02, so the first loss is near
    `ln C`.

    Example:

        >>> vectors, mask = torch.randn(2, 7, 16), torch.ones(2, 7, dtype=torch.bool)
        >>> head = layers.ClassificationHead(16, classes=3, pooling="attention")
        >>> features, aux = head(layers.Memory(vectors, mask, summary=vectors.mean(1)))
        >>> tuple(head.project(features).shape)
        (2, 3)
    """

    not_hidden = ("projection",)

    def __init__(self, width: int, classes: int, pooling: HeadPooling = "mean", dropout: float = 0.0):
        super().__init__()
        self.width, self.classes = width, classes
        self.pooling: HeadPooling = pooling
        self.query = nn.Parameter(torch.empty(width)) if pooling == "attention" else None
        self.dropout = Dropout(dropout)
        self.projection = nn.Linear(width, classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.query is not None:
            nn.init.zeros_(self.query)
        nn.init.normal_(self.projection.weight, std=0.02)
        nn.init.zeros_(self.projection.bias)

    def forward(self, memory: Memory) -> tuple[Float[Tensor, "B D"], AuxLosses]:
        return self.dropout(self._pool(memory)), {}

    @property
    def attention_heads(self) -> int:
        """1 if attention pools the memory, else 0."""
        return int(self.query is not None)

    def without_head(self, head: int) -> RemovableHandle:
        """Set the pooled vector to zero, until the result's `remove()` is called."""

        def clear(module: nn.Module, args: tuple[Memory]) -> tuple[Memory]:
            return (replace(args[0], vectors=torch.zeros_like(args[0].vectors)),)

        return self.register_forward_pre_hook(clear)

    def project(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        """Return the logits of the classes."""
        return self.projection(features)

    def _pool(self, memory: Memory) -> Float[Tensor, "B D"]:
        if self.pooling == "encoder":
            return memory.summary
        vectors, mask = memory.vectors, memory.mask
        any_present = mask.any(1, keepdim=True)
        if self.pooling == "mean":
            return vectors.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        if self.pooling == "last":
            positions = torch.arange(1, mask.shape[1] + 1, device=mask.device)
            last = (mask * positions).argmax(1)
            return vectors.gather(1, last.view(-1, 1, 1).expand(-1, 1, self.width)).squeeze(1)
        if self.pooling == "max":
            lowest = torch.finfo(vectors.dtype).min
            return vectors.masked_fill(~mask[:, :, None], lowest).amax(1).where(any_present, 0.0)
        assert self.query is not None
        scores = vectors @ self.query
        weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(1).where(mask, 0.0)
        self.tap("weights", lambda: weights[:, None, None])
        return (weights[:, None].to(vectors.dtype) @ vectors).squeeze(1)
