"""What a training step of a model takes: floating-point operations, and memory."""

from typing import Any

import torch

from foveal.config import Config
from foveal.core.runtime import autocast, resolve_precision
from foveal.data.core.prepared_data import PreparedData
from foveal.distributed.placement import WHOLE_WEIGHTS
from foveal.inspection.operation_mode import FlopCounter
from foveal.studies.plan.recorder import StepRecorder
from foveal.studies.plan.watched_step import WatchedOptimizer
from foveal.tasks.base import Task
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from foveal.training.carry import starting_carry
from foveal.training.slot_steps import total_loss, total_weights

COUNTED_ROWS = 8
"""Rows of a batch at most whose operations are counted."""
OF_FORWARD = 3
"""A training takes three times the operations of its forward passes: the backward pass has two products for
each product."""


def training_flops(config: Config, prepared: PreparedData[Any, Any]) -> float:
    """Return the floating-point operations of a training for a token, or another unit of speed.

    Rows of the first batch are counted. All models of a comparison have the same.
    """
    task = bound_task(config, prepared, torch.device("cpu"))
    return flops_on(task, task.train_batches(prepared.train).batch(0, 0))


def flops_on(task: Task, batch: Any) -> float:
    """Return the floating-point operations of a training on a batch, for each of its tokens."""
    rows = batch.cut(slice(0, COUNTED_ROWS)) if getattr(batch, "row_count", None) else batch
    objective = task.objective()
    with torch.no_grad(), FlopCounter(task.model) as counter:
        objective(rows, starting_carry(objective, rows, None))
    return float(OF_FORWARD * counter.flops / max(1, rows.tokens))


def step_memory(config: Config, prepared: PreparedData[Any, Any]) -> int:
    """Return the bytes of all tensors at the peak of a step on the first batch."""
    task = bound_task(config, prepared, torch.device("cpu"))
    return memory_on(task, task.train_batches(prepared.train).batch(0, 0))


def memory_on(task: Task, batch: Any) -> int:
    """Return the bytes of all tensors at the peak of a step on a batch: weights, gradients, states of the
    optimizer and activations. Memory that a kernel takes for itself is not seen."""
    config, objective = task.config, task.objective()
    precision = resolve_precision(config.training.precision, torch.device("cpu"))
    task.model.train()
    with StepRecorder({}) as recorder:
        optimizer = WatchedOptimizer(task.model, config.optimizer, WHOLE_WEIGHTS, recorder)
        recorder.start()
        with autocast(torch.device("cpu"), precision):
            result, _ = objective(batch, starting_carry(objective, batch, None))
        loss = total_loss(result, total_weights(objective, [batch]))
        del result
        recorder.phase = "backward"
        loss.backward()  # type: ignore[no-untyped-call]
        recorder.phase = "update"
        optimizer.step(config.optimizer.lr, 1.0)
    return sum(recorder.peak.values())


def bound_task(config: Config, prepared: PreparedData[Any, Any], device: torch.device) -> Task:
    """Return a task bound to a model with its first weights."""
    task = task_of(config).bind(prepared.processor)
    task = task.bind(prepared.processor, build_model(task, device))
    task.store_training_data(prepared.train)
    return task
