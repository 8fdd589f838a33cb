"""Update rules of the optimizers, on groups of weights.

The arithmetic is that of torch.optim's functions. Its classes import torch's compiler at their first use,
which takes as long as the import of torch itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

ParameterGroups = Sequence[dict[str, Any]]
"""Weights `params` with a `weight_decay` and a factor `scale` of the learning rate."""


class UpdateRule(ABC):
    """Updates every weight that has a gradient.

    `state` has the moments of each weight that was updated.
    """

    def __init__(self, groups: ParameterGroups):
        self.groups = groups
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    def weights(self) -> list[Tensor]:
        """Return all weights that the rule updates."""
        return [weight for group in self.groups for weight in group["params"]]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Update every weight that has a gradient; `lr` is the learning rate."""
        for group in self.groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            gradients = [weight.grad for weight in weights]
            if weights:
                self.update(weights, gradients, lr * group["scale"], group["weight_decay"])

    @abstractmethod
    def update(self, weights: list[Tensor], gradients: list[Tensor], lr: float, decay: float) -> None:
        """Update the weights in place."""

    def moments(self, weight: Tensor, *names: str) -> dict[str, Tensor]:
        """Return the moments of a weight, which are zero before its first update."""
        if weight not in self.state:
            self.state[weight] = {name: torch.zeros_like(weight) for name in names}
        return self.state[weight]

    def counted_moments(self, weights: list[Tensor], *names: str) -> list[list[Tensor]]:
        """Return a list of the weights' moments for each name, and a list of their numbers of updates."""
        for weight in weights:
            if "step" not in self.moments(weight, *names):
                self.state[weight]["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
        return [[self.state[weight][name] for weight in weights] for name in (*names, "step")]


class Adam(UpdateRule):
    """Adam (Kingma and Ba 2015), or AdamW with `decoupled` weight decay (Loshchilov and Hutter 2019)."""

    def __init__(self, groups: ParameterGroups, betas: tuple[float, float], epsilon: float, decoupled: bool):
        super().__init__(groups)
        self.betas, self.epsilon, self.decoupled = betas, epsilon, decoupled

    def update(self, weights: list[Tensor], gradients: list[Tensor], lr: float, decay: float) -> None:
        means, squares, steps = self.counted_moments(weights, "exp_avg", "exp_avg_sq")
        beta1, beta2 = self.betas
        # On a CPU, fused is 3.5 times as fast as the plain loop, and 7 times as fast as foreach (1M weights).
        adam(
            weights,
            gradients,
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=lr,
            weight_decay=decay,
            eps=self.epsilon,
            maximize=False,
            decoupled_weight_decay=self.decoupled,
        )


class SGD(UpdateRule):
    """Gradient descent, with momentum if `momentum` is above 0."""

    def __init__(self, groups: ParameterGroups, momentum: float):
        super().__init__(groups)
        self.momentum = momentum

    def update(self, weights: list[Tensor], gradients: list[Tensor], lr: float, decay: float) -> None:
        buffers = [self.state.get(weight, {}).get("momentum_buffer") for weight in weights]
        sgd(
            weights,
            gradients,
            buffers,
            weight_decay=decay,
            momentum=self.momentum,
            lr=lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
        for weight, buffer in zip(weights, buffers, strict=True):
            if buffer is not None:  # torch fills in the buffers of weights that have none
                self.state[weight] = {"momentum_buffer": buffer}


class RMSProp(UpdateRule):
    """RMSProp (Hinton 2012)."""

    def __init__(self, groups: ParameterGroups, decay: float, epsilon: float):
        super().__init__(groups)
        self.decay, self.epsilon = decay, epsilon

    def update(self, weights: list[Tensor], gradients: list[Tensor], lr: float, decay: float) -> None:
        squares, steps = self.counted_moments(weights, "square_avg")
        rmsprop(
            weights,
            gradients,
            squares,
            [],
            [],
            steps,
            lr=lr,
            alpha=self.decay,
            eps=self.epsilon,
            weight_decay=decay,
            momentum=0.0,
            centered=False,
        )


class Adagrad(UpdateRule):
    """Adagrad: `s += g²; w -= lr * g / sqrt(s + epsilon)`.

    Epsilon is inside the root as in Karpathy's min-char-rnn. Duchi, Hazan and Singer 2011 and torch.optim
    have epsilon outside.
    """

    def __init__(self, groups: ParameterGroups, epsilon: float):
        super().__init__(groups)
        self.epsilon = epsilon

    def update(self, weights: list[Tensor], gradients: list[Tensor], lr: float, decay: float) -> None:
        for weight, raw in zip(weights, gradients, strict=True):
            gradient, total = raw.add(weight, alpha=decay), self.moments(weight, "sum")["sum"]
            total.addcmul_(gradient, gradient)
            weight.addcdiv_(gradient, (total + self.epsilon).sqrt_(), value=-lr)
