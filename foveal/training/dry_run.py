"""A dry run on one batch before the first update, which measures the first loss and the cost of a step."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from foveal.config import Config
from foveal.core.allocator import resident_memory
from foveal.core.recompute import recomputing
from foveal.core.runtime import Precision, autocast, peak_memory, seed_everything
from foveal.ops.jit.code_cache import compile_seconds
from foveal.ops.jit.dispatch import reference_only
from foveal.store.sealed import copy_tensors, unique_state_dict
from foveal.training.carry import starting_carry
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batch, Batches, Objective
from foveal.training.slot_steps import total_loss, total_weights
from foveal.training.slots import count_rows


@dataclass(frozen=True)
class DryRunResult:
    """The first loss, and the time and memory of a step."""

    loss: float
    """The first loss, as the objective reports it."""
    seconds: float
    """Seconds of one forward and backward pass over one micro-batch."""
    update_seconds: float
    """Seconds of one update of the weights."""
    memory_bytes: int
    """Peak memory of the process, or of the GPU, in this step or in a checkpoint."""
    resident_bytes: int
    """Memory of the process with all that this step took."""


REPEATED_BELOW = 0.5
"""Seconds of a first pass that is repeated, because its time has much of the first use of torch's parts."""


def dry_run(model: nn.Module, objective: Objective, batch: Batch, config: Config) -> DryRunResult:
    """Run a batch forward and backward, and update the weights. What is quick is measured at its second time.

    Weights and running statistics are restored.
    """
    model.train()
    resident = resident_memory()
    state = unique_state_dict(model)
    before = {name: weight.clone() for name, weight in state.items()}
    device = next(model.parameters()).device
    metrics: dict[str, Any] = {}

    def forward_and_backward() -> None:
        model.zero_grad(set_to_none=True)
        seed_everything(config.training.seed, "preflight")
        with autocast(device, config.training.precision):
            carry = starting_carry(objective, batch, None)
            with recomputing(config.training.activation_checkpointing):
                result, _ = objective(batch, carry)
        total_loss(result, total_weights(objective, [batch])).backward()  # type: ignore[no-untyped-call]
        metrics.update(result.metrics)

    seconds = _measure(forward_and_backward, device)
    optimizer = Optimizer(model, config.optimizer)

    def update() -> None:
        optimizer.step(config.optimizer.lr, optimizer.gradient_stats()[0])

    update_seconds = _measure(update, device)
    model.zero_grad(set_to_none=True)
    copy_tensors(state, before, "")
    total, weight = metrics["loss"]
    memory = _training_memory(resident, model, optimizer, config)
    return DryRunResult(total / weight, seconds, update_seconds, memory, resident_memory())


def forward_seconds(model: nn.Module, objective: Objective, batch: Batch, precision: Precision) -> float:
    """Return the seconds of an evaluation on a batch."""
    device = next(model.parameters()).device

    def forward() -> None:
        with torch.no_grad(), autocast(device, precision):
            objective(batch, starting_carry(objective, batch, None))

    model.eval()
    return _measure(forward, device)


def _measure(work: Callable[[], None], device: torch.device) -> float:
    """Return the seconds of some work, at its second time if the first is quick, compiles kernels, or is the
    first on a GPU, which loads its libraries then."""
    compiled = compile_seconds()
    seconds = _time(work, device)
    if seconds < REPEATED_BELOW or compile_seconds() > compiled or device.type != "cpu":
        seconds = _time(work, device)
    return seconds


def _time(work: Callable[[], None], device: torch.device) -> float:
    """Return the seconds of some work, to its end on the device."""
    started = time.perf_counter()
    work()
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.perf_counter() - started


def _training_memory(resident: int, model: nn.Module, optimizer: Optimizer, config: Config) -> int:
    """Return the peak memory of a training whose process has just run a step, and took `resident` before.

    Either a step takes most, or a checkpoint: gradients, moments, the best weights, and the files' content.
    """
    weights = sum(tensor.nbytes for tensor in unique_state_dict(model).values())
    gradients = sum(weight.nbytes for weight in optimizer.trainable.values())
    moments = sum(value.nbytes for value, _ in optimizer.state().values())
    averages = weights * max(config.training.average_checkpoints, config.training.ema_decay > 0)
    checkpoint = resident + gradients + 2 * moments + 2 * averages + 2 * weights
    is_on_gpu = next(model.parameters()).is_cuda
    return peak_memory() + averages if is_on_gpu else max(peak_memory() + averages, checkpoint)


def compute_row(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    precision: Precision,
    by_reference: bool = False,
) -> None:
    """Pass a row of the first batch through the model, in the precision of a training. The reference paths
    are operations, which can be counted."""
    batch = batches.batch(0, 0)
    count_rows(batch)
    paths = reference_only() if by_reference else nullcontext()
    with torch.no_grad(), paths, autocast(next(model.parameters()).device, precision):
        row = batch.cut(slice(0, 1))
        objective(row, starting_carry(objective, row, None))
