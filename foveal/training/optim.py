"""Optimizers with a common interface: a learning rate per step, clipping with statistics, state by parameter
name.

Weight decay applies to matrices only (`decayed_parameters`), not to biases, gains or initial states. It is
added to the gradient for `sgd`, `momentum`, `adagrad`, `rmsprop` and `adam`, and decoupled for `adamw` and
`muon`.

With `layer_decay` = d, a parameter k layers below the head has d^k of the learning rate (Howard and Ruder
2018; Clark et al. 2020): layers near the input are the most general, and change least.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from foveal.config import OptimizerConfig
from foveal.config.sections import DECOUPLED_DECAY
from foveal.core.errors import UserError
from foveal.core.module_facts import parameters_not_hidden, parameters_without_decay
from foveal.core.stored_tensor import StoredTensor
from foveal.core.torch_private import clamp_all, multiply_all
from foveal.distributed.placement import WHOLE_WEIGHTS, Placement
from foveal.distributed.tree import Gradients
from foveal.training.layer_depth import layer_depths
from foveal.training.muon import Muon
from foveal.training.placed_weights import Held
from foveal.training.update_rules import SGD, Adagrad, Adam, ParameterGroups, RMSProp, UpdateRule


class Optimizer:
    """The configured optimizer over all trainable parameters of a model."""

    def __init__(self, model: nn.Module, config: OptimizerConfig, placement: Placement = WHOLE_WEIGHTS):
        self.config, self.placement = config, placement
        self._parameters = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.trainable = {
            name: placement.own_weight(name, weight) for name, weight in self._parameters.items()
        }
        """The part of each weight that this process updates."""
        self._names: dict[Tensor, str] = {weight: name for name, weight in self.trainable.items()}
        self._parts = _update_rules(model, self._parameters, config, placement)

    def zero_grad(self) -> None:
        for weight in (*self._parameters.values(), *self.trainable.values()):
            weight.grad = None

    def take_gradients(self) -> Gradients:
        """Return the gradient of each trained weight, and leave none."""
        return [self.placement.take_gradient(weight) for weight in self._parameters.values()]

    def put_gradients(self, gradients: Gradients) -> None:
        """Set the gradient of each trained weight."""
        for weight, gradient in zip(self.trainable.values(), gradients, strict=True):
            weight.grad = gradient

    def gradient_stats(self) -> tuple[float, float]:
        """Return the gradient's global norm `sqrt(sum g²)` and its largest absolute value."""
        if not self._gradients():
            raise UserError("no trained weight has a gradient: compute the loss from what the model returns")
        gradients = [
            weight.grad
            for weight in self.trainable.values()
            if weight.grad is not None and weight.numel() and self.placement.counts(weight)
        ]
        # On a CPU torch's infinity norm takes a hundred times as long as aminmax.
        extremes = [extreme for gradient in gradients for extreme in gradient.aminmax()]
        largest = float(torch.stack(extremes).abs().max()) if extremes else 0.0
        own = torch.tensor([float(nn.utils.get_total_norm(gradients)), largest], dtype=torch.float64)
        norms, maxima = self.placement.gather(own).T.tolist()
        return math.hypot(*norms), max(maxima)

    def divide_gradients(self, factor: float) -> None:
        """Divide all gradients by the factor of the loss."""
        multiply_all(self._gradients(), 1 / factor)

    def step(self, lr: float, norm: float) -> None:
        """Clip by `norm`, the current global norm, then by value, and update every parameter with `lr`."""
        if 0 < self.config.clip_norm < norm:
            multiply_all(self._gradients(), self.config.clip_norm / norm)
        if self.config.clip_value:
            clamp_all(self._gradients(), self.config.clip_value)
        for part in self._parts:
            part.step(lr)

    def state(self) -> Held:
        """Return the state for the own parts of the weights, as `<parameter>/<moment>`."""
        return {
            f"{self._names[weight]}/{moment}": (value, weight)
            for part in self._parts
            for weight, moments in part.state.items()
            for moment, value in moments.items()
        }

    def load_state(self, tensors: Mapping[str, StoredTensor], name: str) -> None:
        """Restore the state of whole weights. `name` is for the error message."""
        state: dict[str, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            parameter, _, moment = key.rpartition("/")
            weight = self.trainable.get(parameter)
            if weight is None or value.shape not in ((), self.placement.whole_shape(weight)):
                raise UserError(f"{name}: {key} {list(value.shape)} does not fit the model")
            state.setdefault(parameter, {})[moment] = self.placement.read(value, weight)
        for part in self._parts:
            for weight in part.weights():
                if (moments := state.get(self._names[weight])) is not None:
                    part.state[weight] = {key: value.to(weight.device) for key, value in moments.items()}

    def _gradients(self) -> list[Tensor]:
        return [weight.grad for weight in self.trainable.values() if weight.grad is not None]


def decayed_parameters(model: nn.Module) -> set[nn.Parameter]:
    """Return the parameters with weight decay: maps from vectors to vectors, and tables of vectors."""
    matrices = {weight for weight in model.parameters() if weight.dim() >= 2}
    return matrices - parameters_without_decay(model)


def hidden_matrices(model: nn.Module) -> set[nn.Parameter]:
    """Return the parameters that Muon updates: matrices between hidden vectors, and filters over all channels
    of a grid.

    Tables and the projection to the vocabulary have one side that is not a hidden vector. AdamW updates them,
    and all parameters that are not matrices (Jordan 2024).
    """
    return {
        weight
        for weight in decayed_parameters(model) - parameters_not_hidden(model)
        if weight.dim() == 2 or (weight.dim() == 4 and weight.shape[1] > 1)
    }


def _update_rules(
    model: nn.Module, trainable: Mapping[str, nn.Parameter], config: OptimizerConfig, placement: Placement
) -> list[UpdateRule]:
    if config.name == "muon":
        hidden = hidden_matrices(model)
        matrices = {name: weight for name, weight in trainable.items() if weight in hidden}
        others = {name: weight for name, weight in trainable.items() if weight not in hidden}
        matrix_groups, other_groups = (
            _parameter_groups(model, part, config, placement) for part in (matrices, others)
        )
        parts: list[UpdateRule] = [_adam(other_groups, config)] if other_groups else []
        muon = Muon(matrix_groups, config.momentum, placement)
        return [muon, *parts] if matrix_groups else parts
    groups = _parameter_groups(model, trainable, config, placement)
    if config.name in ("adam", "adamw"):
        return [_adam(groups, config)]
    if config.name == "adagrad":
        return [Adagrad(groups, config.epsilon)]
    if config.name == "rmsprop":
        return [RMSProp(groups, config.beta2, config.epsilon)]
    return [SGD(groups, config.momentum if config.name == "momentum" else 0.0)]


def _adam(groups: ParameterGroups, config: OptimizerConfig) -> Adam:
    betas, is_decoupled = (config.beta1, config.beta2), config.name in DECOUPLED_DECAY
    return Adam(groups, betas, config.epsilon, is_decoupled)


def _parameter_groups(
    model: nn.Module, trainable: Mapping[str, nn.Parameter], config: OptimizerConfig, placement: Placement
) -> ParameterGroups:
    """Group the own parts of the parameters by weight decay and depth. `scale` is a factor of the group's
    learning rate."""
    depth = layer_depths(model) if config.layer_decay != 1 else dict.fromkeys(trainable, 0)
    decayed = decayed_parameters(model)
    groups: dict[tuple[bool, int], list[Tensor]] = {}
    for name, weight in trainable.items():
        groups.setdefault((weight in decayed, depth[name]), []).append(placement.own_weight(name, weight))
    return [
        {
            "params": weights,
            "weight_decay": config.weight_decay if decays else 0.0,
            "scale": config.layer_decay**below,
        }
        for (decays, below), weights in groups.items()
    ]
