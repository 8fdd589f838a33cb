"""The size of an optimizer's update over the size of the weights, layer by layer, by a step that is
undone."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from foveal.training.optim import Optimizer


@dataclass(frozen=True)
class LayerUpdate:
    """The Euclidean norms of a layer's own weights, their gradient before clipping, and their update."""

    layer: str
    weights: int
    """The number of weights."""
    weight_norm: float
    gradient_norm: float
    update_norm: float

    @property
    def ratio(self) -> float:
        """|update| / |weight|; NaN for weights that are all zero."""
        return self.update_norm / self.weight_norm if self.weight_norm else math.nan


def layer_updates(
    model: nn.Module, optimizer: Optimizer, loss: Callable[[], Tensor], lr: float
) -> list[LayerUpdate]:
    """Return what a step of the optimizer would change, in training mode. The model is as before afterwards;
    the optimizer's state is that after the step."""
    before = {name: weight.detach().clone() for name, weight in optimizer.trainable.items()}
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    was_training = model.training
    model.train()
    optimizer.zero_grad()
    try:
        loss().backward()  # type: ignore[no-untyped-call]
        gradients = {
            name: weight.grad.norm()
            for name, weight in optimizer.trainable.items()
            if weight.grad is not None
        }
        norm, _ = optimizer.gradient_stats()
        optimizer.step(lr, norm)
        squares: defaultdict[str, list[tuple[int, float, float, float]]] = defaultdict(list)
        for name, old in before.items():
            change = optimizer.trainable[name].detach() - old
            sizes = float(old.norm()), float(gradients.get(name, torch.zeros(()))), float(change.norm())
            squares[name.rpartition(".")[0]].append((old.numel(), *sizes))
    finally:
        with torch.no_grad():
            for name, old in before.items():
                optimizer.trainable[name].copy_(old)
            for buffer, value in buffers:
                buffer.copy_(value)
        optimizer.zero_grad()
        model.train(was_training)
    return [
        LayerUpdate(layer, sum(counts), *(math.hypot(*norms) for norms in columns))
        for layer, parts in squares.items()
        for counts, *columns in [tuple(zip(*parts, strict=True))]
    ]
