"""A user's function of module and batch as an objective of the trainer."""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import State
from foveal.training.module.batch import ModuleBatch, copy_containers

UserObjective = Callable[[nn.Module, Any], Any]
"""Returns the loss of a module on a batch, a scalar tensor, or a pair of the loss and a dict of metrics."""
CONTRACT = "return the loss, a scalar tensor, or (loss, {'metric': number})"
LOG_FIELDS = {
    *("kind", "step", "epoch", "tokens", "loss", "objective", "rate", "gradient_norm", "gradient_largest"),
    *("seconds", "tokens_per_second", "culprit", "in_a_row", "best_step"),
    *("seconds_left", "seconds_left_in_steps"),
}
"""Names in the log that no metric may have."""


class ModuleObjective:
    """Calls `objective(module, batch)` and checks what it returns."""

    def __init__(self, module: nn.Module, objective: UserObjective):
        self.module, self.objective = module, objective

    def __call__(self, batch: ModuleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        """Return the loss as the only term, and the loss and the user's metrics as metrics.

        Raises: UserError: the function returned something else than a loss, or a loss with metrics.
        """
        loss, metrics = _split(self.objective(self.module, copy_containers(batch.value)))
        numbers = {"loss": float(loss.detach()), **metrics}
        weighted = {name: (number * batch.weight, batch.weight) for name, number in numbers.items()}
        return ObjectiveOutput({"loss": Term(loss * batch.weight, batch.weight)}, weighted), None

    def weights(self, batch: ModuleBatch) -> dict[str, float]:
        """Return the weight of the loss."""
        return {"loss": batch.weight}

    def start(self, batch: ModuleBatch) -> State:
        """Return no carry."""
        return None

    def preview(self, step: int) -> str | None:
        """Return no sample."""
        return None


def _split(result: Any) -> tuple[Tensor, dict[str, float]]:
    """Return the loss and the metrics that a user's function returned.

    Raises: UserError: it returned something else.
    """
    loss, metrics = result if isinstance(result, tuple) and len(result) == 2 else (result, {})
    if not isinstance(loss, Tensor):
        raise UserError(f"objective returned {_describe(result)}: {CONTRACT}")
    if loss.numel() != 1:
        raise UserError(
            f"objective returned a loss of shape {list(loss.shape)}: take its mean, or {CONTRACT}"
        )
    if not loss.is_floating_point():
        raise UserError(f"objective returned a loss of {loss.dtype}, which has no gradient: {CONTRACT}")
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise UserError(
            "objective returned a loss without a gradient: compute it from what the module returns, without "
            "detach(), .item() or torch.no_grad()"
        )
    if not isinstance(metrics, Mapping):
        raise UserError(f"objective returned (loss, {_describe(metrics)}): {CONTRACT}")
    return loss.reshape(()), {str(name): _number(str(name), value) for name, value in metrics.items()}


def _number(name: str, value: Any) -> float:
    """Return the value of a metric.

    Raises: UserError: the value is no number, or the name is taken.
    """
    if name in LOG_FIELDS:
        raise UserError(f"objective returned a metric {name!r}, which the log has already: rename the metric")
    is_scalar = isinstance(value, Tensor) and value.numel() == 1
    if not is_scalar and not isinstance(value, Real):
        raise UserError(f"objective returned the metric {name!r} as {_describe(value)}: return a number")
    return float(value.detach() if isinstance(value, Tensor) else value)


def _describe(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, Mapping):
        return f"a dict with {', '.join(map(repr, [*value][:3]))}" if value else "an empty dict"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "None" if value is None else f"{type(value).__name__} {value!r}"[:60]
