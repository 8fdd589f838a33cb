"""One update of the weights: micro-batches added up, clipped, applied, or refused if not finite."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.result import Result, Totals
from foveal.core.runtime import Precision, autocast, seed_everything
from foveal.core.state import State, detach, finite_rows, map_state, reset
from foveal.training.first_nonfinite import find_culprit
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batch, Task


@dataclass(frozen=True)
class Step:
    """What one update did. `norm` and `largest` are of the gradient before any clipping."""

    loss: float
    metrics: dict[str, float]
    norm: float
    largest: float
    culprit: str | None
    """None if the update was applied, else where the first number that is not finite appeared."""


def train_step(
    model: nn.Module,
    task: Task,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    carries: Sequence[State],
    *,
    rate: float,
    seed: tuple[object, ...],
    precision: Precision = "float32",
) -> tuple[Step, list[State]]:
    """Train on the micro-batches of one step, each with the carry of its own slot; returns the new carries.

    The objective is, over the terms, `coefficient * sum / total weight`; the total is taken over all
    micro-batches before the first backward pass, so they equal one big batch. The noise of slot k is a
    function of (seed, k). If the loss or the gradient is not finite, weights, buffers and optimizer stay
    bit for bit as they were, and rows of the carry that are not finite begin again.
    """
    model.train()
    optimizer.zero_grad()
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    totals = total_weights(task, batches)
    metrics, losses, carried = Totals(), [], []
    device = next(model.parameters()).device

    def forward(slot: int) -> tuple[Result, State]:
        seed_everything(*seed, slot)
        with autocast(device, precision):
            return task(batches[slot], begin(task, batches[slot], carries[slot]))

    for slot, batch in enumerate(batches):
        result, carry = forward(slot)
        loss = objective(result, totals)
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
        metrics.add(result.metrics)
        carried.append(None if batch.fresh is None else settle(carry))

    loss_value = float(torch.stack(losses).sum())
    norm, largest = optimizer.measure()
    if math.isfinite(loss_value) and math.isfinite(norm):
        culprit = None
        optimizer.step(rate, norm)
    else:
        culprit = find_culprit(model, forward, len(batches))
        for buffer, value in buffers:
            buffer.copy_(value)
        carried = [_mend(task, *pair) for pair in zip(batches, carried, strict=True)]
    return Step(loss_value, metrics.means(), norm, largest, culprit), carried


def total_weights(task: Task, batches: Sequence[Batch]) -> dict[str, float]:
    """The weight of each term over all micro-batches."""
    totals: dict[str, float] = {}
    for batch in batches:
        for name, weight in task.weights(batch).items():
            totals[name] = totals.get(name, 0.0) + weight
    return totals


def objective(result: Result, totals: dict[str, float]) -> Tensor:
    """This micro-batch's part of the objective, a scalar."""
    parts = [term.coefficient * term.sum / (totals[name] or 1.0) for name, term in result.terms.items()]
    return torch.stack(parts).sum()


def begin(task: Task, batch: Batch, carry: State) -> State:
    """The carry a batch starts from: rows that begin a stream are put back to the start."""
    if batch.fresh is None:
        return None
    if carry is None:
        return task.start(batch)
    return reset(carry, batch.fresh, task.start(batch)) if batch.fresh.any() else carry


def settle(carry: State) -> State:
    """The carry cut off from its history, in storage of its own.

    A view would keep its whole chunk alive, and would lie in memory otherwise than after a resume, where
    the last bit of a product may then differ.
    """

    def leaf(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        alone = value.is_contiguous() and value.untyped_storage().nbytes() == value.nbytes
        return value if alone else value.clone(memory_format=torch.contiguous_format)

    return map_state(leaf, detach(carry))


def _mend(task: Task, batch: Batch, carry: State) -> State:
    if batch.fresh is None or carry is None:
        return None
    bad = ~finite_rows(carry, len(batch.fresh))
    return settle(reset(carry, bad, task.start(batch))) if bad.any() else carry
