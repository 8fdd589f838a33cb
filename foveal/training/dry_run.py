"""Before the first update: what the first loss is, and what a step will cost, measured on one batch."""

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
    loss: float
    """The first loss, as the task reports it."""
    seconds: float
    """One forward and backward pass over one micro-batch."""
    update_seconds: float
    """Seconds of one update of the weights."""
    memory_bytes: int
    """Weights, gradients, the optimizer's two moments, and what the forward pass keeps for the backward."""


def dry_run(model: nn.Module, objective: Objective, batch: Batch, config: Config) -> DryRunResult:
    """Run the first batch forward and backward twice (the first warms up), and update twice; weights, and
    statistics that run with the batches, stay as they are."""
    model.train()
    own = unique_state_dict(model)
    before = {name: weight.clone() for name, weight in own.items()}
    device = next(model.parameters()).device
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    seconds, metrics = 0.0, dict[str, Any]()
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        seed_everything(config.training.seed, "preflight")
        kept.clear()
        started = time.perf_counter()
        saving = torch.autograd.graph.saved_tensors_hooks(keep, lambda kept: kept)
        with autocast(device, config.training.precision), saving:
            result, _ = objective(batch, starting_carry(objective, batch, None))
        total_loss(result, total_weights(objective, [batch])).backward()  # type: ignore[no-untyped-call]
        seconds = time.perf_counter() - started
        metrics = result.metrics
    update = _update_seconds(model, config)
    model.zero_grad(set_to_none=True)
    copy_tensors(own, before, "")
    weights = {p.data_ptr(): p.nbytes for p in model.parameters()}
    activations = sum(size for pointer, size in kept.items() if pointer not in weights)
    total, weight = metrics["loss"]
    # Weights, and what is averaged; of those that are trained a gradient and at most two moments.
    averaged = config.training.average_checkpoints or config.training.ema_decay > 0
    copies = (1 + averaged) * sum(weights.values())
    copies += 3 * sum({p.data_ptr(): p.nbytes for p in model.parameters() if p.requires_grad}.values())
    return DryRunResult(total / weight, seconds, update, copies + activations)


def _update_seconds(model: nn.Module, config: Config) -> float:
    """What the second update takes (the first makes the moments)."""
    optimizer, seconds = Optimizer(model, config.optimizer), 0.0
    for _ in range(2):
        started = time.perf_counter()
        norm, _ = optimizer.gradient_stats()
        optimizer.step(config.optimizer.lr, norm)
        seconds = time.perf_counter() - started
    return seconds
