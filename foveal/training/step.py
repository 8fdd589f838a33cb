"""An update of the weights: gradients are summed over micro-batches, clipped, and applied, or skipped if they
are not finite."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.result import ObjectiveOutput, Totals
from foveal.core.runtime import Precision, autocast, seed_everything
from foveal.core.state import State, detach_state, finite_rows, map_state, reset_rows
from foveal.training.first_nonfinite import find_first_nonfinite
from foveal.training.loss_scaling import LossScaling
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batch, Objective


@dataclass(frozen=True)
class StepResult:
    """The result of an update. `gradient_norm` and `gradient_max` are before any clipping."""

    loss: float
    metrics: dict[str, float]
    gradient_norm: float
    gradient_max: float
    first_nonfinite: str | None
    """None if the update was applied, else where the first non-finite number appeared."""


def train_step(
    model: nn.Module,
    objective: Objective,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    carries: Sequence[State],
    *,
    lr: float,
    seed: tuple[object, ...],
    precision: Precision = "float32",
    scaling: LossScaling | None = None,
) -> tuple[StepResult, list[State]]:
    """Train on the micro-batches of a step, each with the carry of its slot. Return the result and the new
    carries.

    The objective is the sum over the terms of `coefficient * sum / total weight`. The total weight is taken
    over all micro-batches before the first backward pass, so the micro-batches equal one large batch. The
    noise of slot k is a function of (seed, k). If the loss or the gradient is not finite, weights, buffers
    and optimizer stay the same bit for bit, and the non-finite rows of the carry are reset. With loss
    `scaling`, gradients that overflow are first computed again with smaller factors.
    """
    model.train()
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    totals = total_weights(objective, batches)
    device = next(model.parameters()).device

    def forward(slot: int) -> tuple[ObjectiveOutput, State]:
        seed_everything(*seed, slot)
        with autocast(device, precision):
            return objective(batches[slot], starting_carry(objective, batches[slot], carries[slot]))

    def restore_buffers() -> None:
        for buffer, value in buffers:
            buffer.copy_(value)

    while True:
        optimizer.zero_grad()
        metrics, losses, carried = Totals(), [], []
        for slot, batch in enumerate(batches):
            result, carry = forward(slot)
            loss = total_loss(result, totals)
            scaled = loss if scaling is None else loss * scaling.factor
            scaled.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
            metrics.add(result.metrics)
            carried.append(None if batch.stream_starts is None else detach_carry(carry))
        if scaling is not None:
            optimizer.divide_gradients(scaling.factor)
        loss_value = float(torch.stack(losses).sum())
        norm, largest = optimizer.gradient_stats()
        overflows = math.isfinite(loss_value) and not math.isfinite(norm)
        if scaling is None or not overflows or not scaling.shrink():
            break
        restore_buffers()

    if math.isfinite(loss_value) and math.isfinite(norm):
        first_nonfinite = None
        optimizer.step(lr, norm)
        if scaling is not None:
            scaling.count_step()
    else:
        first_nonfinite = find_first_nonfinite(model, forward, len(batches))
        restore_buffers()
        carried = [_reset_nonfinite_rows(objective, *pair) for pair in zip(batches, carried, strict=True)]
    return StepResult(loss_value, metrics.means(), norm, largest, first_nonfinite), carried


def total_weights(objective: Objective, batches: Sequence[Batch]) -> dict[str, float]:
    """Return the weight of each term over all micro-batches."""
    totals: dict[str, float] = {}
    for batch in batches:
        for name, weight in objective.weights(batch).items():
            totals[name] = totals.get(name, 0.0) + weight
    return totals


def total_loss(result: ObjectiveOutput, totals: dict[str, float]) -> Tensor:
    """Return this micro-batch's part of the objective, a scalar."""
    parts = [term.coefficient * term.sum / (totals[name] or 1.0) for name, term in result.terms.items()]
    return torch.stack(parts).sum()


def starting_carry(objective: Objective, batch: Batch, carry: State) -> State:
    """Return the initial carry of a batch. Rows that begin a stream are reset to the initial state."""
    if batch.stream_starts is None:
        return None
    if carry is None:
        return objective.start(batch)
    return (
        reset_rows(carry, batch.stream_starts, objective.start(batch)) if batch.stream_starts.any() else carry
    )


def detach_carry(carry: State) -> State:
    """Return the carry detached from its history, in new storage.

    A view would keep its whole chunk in memory. The memory layout of a view would also differ from the layout
    after a resume, and then the last bit of a product may differ.
    """

    def leaf(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        own_storage = value.is_contiguous() and value.untyped_storage().nbytes() == value.nbytes
        return value if own_storage else value.clone(memory_format=torch.contiguous_format)

    return map_state(leaf, detach_state(carry))


def _reset_nonfinite_rows(objective: Objective, batch: Batch, carry: State) -> State:
    """Reset the rows of the carry that are not finite."""
    if batch.stream_starts is None or carry is None:
        return None
    nonfinite = ~finite_rows(carry, len(batch.stream_starts))
    return detach_carry(reset_rows(carry, nonfinite, objective.start(batch))) if nonfinite.any() else carry
