"""Averages of the weights during training, which are often better than the final weights."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from foveal.config import TrainingConfig
from foveal.core.stored_tensor import StoredTensor
from foveal.core.torch_private import interpolate_all
from foveal.distributed.placement import WHOLE_WEIGHTS, Placement
from foveal.store.sealed import copy_tensors
from foveal.training.placed_weights import Held, own_state_dict


class WeightAverage(ABC):
    """An average of the weights during training, including batch norm's running statistics.

    `tensors` are all tensors that a checkpoint has to store, of the own parts of the weights.
    """

    tensors: dict[str, Tensor]

    def __init__(self, model: nn.Module, placement: Placement):
        self._placement = placement
        self._weights = {
            name: weight
            for name, weight in own_state_dict(model, placement).items()
            if weight.is_floating_point()
        }

    def update(self, step: int) -> None:  # noqa: B027  # some averages ignore updates
        """Add the weights after update number `step` (from 0) to the average."""

    def on_evaluation(self, step: int) -> None:  # noqa: B027
        """Add the weights at an evaluation, after `step` updates. Repeated calls for the same step have no
        effect."""

    @abstractmethod
    def averaged_weights(self) -> dict[str, Tensor]:
        """Return the averages by the names of the weights."""

    @abstractmethod
    def weight_of(self, key: str) -> Tensor | None:
        """Return the own part of the weight to which one of the `tensors` belongs; None if to none."""

    def state(self) -> Held:
        """Return the `tensors`, each with the own part of its weight."""
        return {key: (value, self.weight_of(key)) for key, value in self.tensors.items()}

    def load(self, tensors: Mapping[str, StoredTensor], name: str) -> None:
        """Continue from saved `tensors` for whole weights. `name` is for the error message."""
        read = {key: self._read(value, self.weight_of(key)) for key, value in tensors.items()}
        copy_tensors(self.tensors, read, name)

    def _read(self, value: StoredTensor, weight: Tensor | None) -> Tensor:
        return value.whole() if weight is None else self._placement.read(value, weight)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Return a context in which the model's weights are the average. Afterwards the exact weights are
        restored."""
        originals = [weight.clone() for weight in self._weights.values()]
        for name, mean in self.averaged_weights().items():
            self._weights[name].copy_(mean)
        try:
            yield
        finally:
            for weight, original in zip(self._weights.values(), originals, strict=True):
                weight.copy_(original)


class ExponentialMovingAverage(WeightAverage):
    """`average += (1 - d) * (weights - average)` after each update (Polyak and Juditsky 1992).

    `d = min(decay, (1 + step) / (10 + step))` grows to the configured decay. The initial weights, which are
    noise, are therefore soon forgotten, and early evaluations are meaningful.
    """

    def __init__(self, model: nn.Module, decay: float, placement: Placement = WHOLE_WEIGHTS):
        super().__init__(model, placement)
        self.decay = decay
        self.tensors = {name: weight.clone() for name, weight in self._weights.items()}

    def update(self, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        interpolate_all(list(self.tensors.values()), list(self._weights.values()), 1 - decay)

    def averaged_weights(self) -> dict[str, Tensor]:
        return self.tensors

    def weight_of(self, key: str) -> Tensor | None:
        return self._weights.get(key)


class CheckpointAverage(WeightAverage):
    """The mean of the weights at the last `count` evaluations (Vaswani et al. 2017, 6.1, there of
    checkpoints).

    The weights are kept in a ring buffer: those of evaluation number i at index i mod `count`. `steps` has
    the number of updates before each entry, or -1 for an empty entry.
    """

    def __init__(self, model: nn.Module, count: int, placement: Placement = WHOLE_WEIGHTS):
        super().__init__(model, placement)
        self._kept = {name: weight.new_zeros(count, *weight.shape) for name, weight in self._weights.items()}
        self._steps = torch.full((count,), -1)
        self.tensors = {"steps": self._steps, **{f"kept.{name}": kept for name, kept in self._kept.items()}}

    def on_evaluation(self, step: int) -> None:
        if step not in self._steps:
            index = int(self._steps.argmin())  # an empty entry, else the oldest
            self._steps[index] = step
            for name, weight in self._weights.items():
                self._kept[name][index] = weight

    def averaged_weights(self) -> dict[str, Tensor]:
        count = int((self._steps >= 0).sum())
        return {name: kept[:count].mean(0) for name, kept in self._kept.items()} if count else self._weights

    def weight_of(self, key: str) -> Tensor | None:
        return self._weights.get(key.removeprefix("kept."))


def make_average(model: nn.Module, config: TrainingConfig, placement: Placement) -> WeightAverage | None:
    """Return the configured average, or None if the weights are not averaged."""
    if config.ema_decay:
        return ExponentialMovingAverage(model, config.ema_decay, placement)
    if config.average_checkpoints:
        return CheckpointAverage(model, config.average_checkpoints, placement)
    return None
