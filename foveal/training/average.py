"""An exponential moving average of the weights, which is often better than its last member."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from foveal.training.sealed import copy_tensors, weights_of


class Average:
    """`average += (1 - d) * (weights - average)` after each update (Polyak and Juditsky 1992).

    `d = min(decay, (1 + step) / (10 + step))` grows to the wanted decay, so that the first weights, which
    are noise, are soon forgotten and early evaluations are sane. Batch norm's running statistics are averaged
    too, since they belong to the weights.
    """

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self._weights = {
            name: weight for name, weight in weights_of(model).items() if weight.is_floating_point()
        }
        self.tensors = {name: weight.clone() for name, weight in self._weights.items()}

    def update(self, step: int) -> None:
        """Take in the weights after update number `step` (from 0)."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.tensors.values()), list(self._weights.values()), 1 - decay)

    def load(self, tensors: dict[str, Tensor], name: str) -> None:
        """Go on from saved `tensors`; `name` is for the error."""
        copy_tensors(self.tensors, tensors, name)

    @contextmanager
    def in_model(self) -> Iterator[None]:
        """Inside, the model's weights are the average; the exact weights come back after."""
        kept = [weight.clone() for weight in self._weights.values()]
        for name, weight in self._weights.items():
            weight.copy_(self.tensors[name])
        try:
            yield
        finally:
            for weight, old in zip(self._weights.values(), kept, strict=True):
                weight.copy_(old)
