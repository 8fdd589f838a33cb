"""What a training step of a model takes: floating-point operations, and memory."""

from typing import Any

import torch

from foveal.config import Config
from foveal.data.core.prepared_data import PreparedData
from foveal.inspection.operation_mode import FlopCounter
from foveal.studies.plan.step_memory import memory_on
from foveal.tasks.base import Task
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from foveal.training.carry import starting_carry

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
    return sum(memory_on(task, task.train_batches(prepared.train).batch(0, 0)).values())


def bound_task(config: Config, prepared: PreparedData[Any, Any], device: torch.device) -> Task:
    """Return a task bound to a model with its first weights."""
    task = task_of(config).bind(prepared.processor)
    task = task.bind(prepared.processor, build_model(task, device))
    task.store_training_data(prepared.train)
    return task
