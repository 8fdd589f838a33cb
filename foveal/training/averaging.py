"""Averages of the weights of one training, which are often better than its last."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from foveal.config import TrainingConfig
from foveal.store.sealed import copy_tensors, unique_state_dict


class WeightAverage(ABC):
    """A mean of the weights on the way; of batch norm's running statistics too, which belong to them.

    `tensors` are all that a checkpoint has to keep.
    """

    tensors: dict[str, Tensor]

    def __init__(self, model: nn.Module):
        self._weights = {
            name: weight for name, weight in unique_state_dict(model).items() if weight.is_floating_point()
        }

    def update(self, step: int) -> None:  # noqa: B027  # some take in nothing here
        """Take in the weights after update number `step` (from 0)."""

    def on_evaluation(self, step: int) -> None:  # noqa: B027
        """Take in the weights at an evaluation, after `step` updates; once, however often it is called."""

    @abstractmethod
    def averaged_weights(self) -> dict[str, Tensor]:
        """By the names of the weights."""

    def load(self, tensors: dict[str, Tensor], name: str) -> None:
        """Go on from saved `tensors`; `name` is for the error."""
        copy_tensors(self.tensors, tensors, name)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model's weights are the mean; the exact weights come back after."""
        kept = [weight.clone() for weight in self._weights.values()]
        for name, mean in self.averaged_weights().items():
            self._weights[name].copy_(mean)
        try:
            yield
        finally:
            for weight, old in zip(self._weights.values(), kept, strict=True):
                weight.copy_(old)


class ExponentialMovingAverage(WeightAverage):
    """`average += (1 - d) * (weights - average)` after each update (Polyak and Juditsky 1992).

    `d = min(decay, (1 + step) / (10 + step))` grows to the wanted decay, so that the first weights, which
    are noise, are soon forgotten and early evaluations are sane.
    """

    def __init__(self, model: nn.Module, decay: float):
        super().__init__(model)
        self.decay = decay
        self.tensors = {name: weight.clone() for name, weight in self._weights.items()}

    def update(self, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.tensors.values()), list(self._weights.values()), 1 - decay)

    def averaged_weights(self) -> dict[str, Tensor]:
        return self.tensors


class CheckpointAverage(WeightAverage):
    """The mean of the weights at the last `count` evaluations (Vaswani et al. 2017, 6.1, of checkpoints).

    They lie in a ring: those of evaluation number i in place i mod `count`. `steps` says after how many
    updates each was taken, -1 where none is yet.
    """

    def __init__(self, model: nn.Module, count: int):
        super().__init__(model)
        self._kept = {name: weight.new_zeros(count, *weight.shape) for name, weight in self._weights.items()}
        self._steps = torch.full((count,), -1)
        self.tensors = {"steps": self._steps, **{f"kept.{name}": kept for name, kept in self._kept.items()}}

    def on_evaluation(self, step: int) -> None:
        if step not in self._steps:
            place = int(self._steps.argmin())  # an empty one, else that of the oldest
            self._steps[place] = step
            for name, weight in self._weights.items():
                self._kept[name][place] = weight

    def averaged_weights(self) -> dict[str, Tensor]:
        there = int((self._steps >= 0).sum())
        return {name: kept[:there].mean(0) for name, kept in self._kept.items()} if there else self._weights


def make_average(model: nn.Module, config: TrainingConfig) -> WeightAverage | None:
    """As configured; None if the weights themselves are evaluated and kept."""
    if config.ema_decay:
        return ExponentialMovingAverage(model, config.ema_decay)
    return CheckpointAverage(model, config.average_checkpoints) if config.average_checkpoints else None
