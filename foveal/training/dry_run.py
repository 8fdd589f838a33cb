"""A dry run on one batch before the first update, which measures the first loss and the cost of a step."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import Config
from foveal.core.runtime import autocast, seed_everything
from foveal.store.sealed import copy_tensors, unique_state_dict
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batch, Objective
from foveal.training.step import starting_carry, total_loss, total_weights


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
    """Bytes of weights, gradients, the optimizer's two moments, and the activations kept for the backward
    pass."""


def dry_run(model: nn.Module, objective: Objective, batch: Batch, config: Config) -> DryRunResult:
    """Run the first batch forward and backward twice, and update twice. The first pass warms up.

    Weights and running statistics are restored.
    """
    model.train()
    state = unique_state_dict(model)
    before = {name: weight.clone() for name, weight in state.items()}
    device = next(model.parameters()).device
    saved_bytes: dict[int, int] = {}

    def record_storage(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved_bytes[storage.data_ptr()] = storage.nbytes()
        return tensor

    seconds, metrics = 0.0, dict[str, Any]()
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        seed_everything(config.training.seed, "preflight")
        saved_bytes.clear()
        started = time.perf_counter()
        saving = torch.autograd.graph.saved_tensors_hooks(record_storage, lambda tensor: tensor)
        with autocast(device, config.training.precision), saving:
            result, _ = objective(batch, starting_carry(objective, batch, None))
        total_loss(result, total_weights(objective, [batch])).backward()  # type: ignore[no-untyped-call]
        seconds = time.perf_counter() - started
        metrics = result.metrics
    update = _update_seconds(model, config)
    model.zero_grad(set_to_none=True)
    copy_tensors(state, before, "")
    weights = {p.data_ptr(): p.nbytes for p in model.parameters()}
    activations = sum(size for pointer, size in saved_bytes.items() if pointer not in weights)
    total, weight = metrics["loss"]
    # The weights and their average. For each trained weight also a gradient and at most two moments.
    averaged = config.training.average_checkpoints or config.training.ema_decay > 0
    copies = (1 + averaged) * sum(weights.values())
    copies += 3 * sum({p.data_ptr(): p.nbytes for p in model.parameters() if p.requires_grad}.values())
    return DryRunResult(total / weight, seconds, update, copies + activations)


def _update_seconds(model: nn.Module, config: Config) -> float:
    """Return the seconds of the second update. The first update allocates the moments."""
    optimizer, seconds = Optimizer(model, config.optimizer), 0.0
    for _ in range(2):
        started = time.perf_counter()
        norm, _ = optimizer.gradient_stats()
        optimizer.step(config.optimizer.lr, norm)
        seconds = time.perf_counter() - started
    return seconds
