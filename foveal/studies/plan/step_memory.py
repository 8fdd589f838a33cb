"""The memory of a training step on a batch that has numbers, of a model that may have none."""

from collections import Counter
from typing import Any

from foveal.core.recompute import recomputing
from foveal.core.runtime import autocast, resolve_precision
from foveal.distributed.placement import WHOLE_WEIGHTS
from foveal.studies.plan.fake_tensors import made_without_numbers, reading_numbers
from foveal.studies.plan.recorder import MemoryKind, StepRecorder
from foveal.studies.plan.watched_step import WatchedOptimizer
from foveal.tasks.base import Task
from foveal.training.averaging import make_average
from foveal.training.carry import starting_carry
from foveal.training.freezing import freeze
from foveal.training.slot_steps import total_loss, total_weights


def counted_memory(task: Task, batch: Any) -> Counter[MemoryKind]:
    """Return the bytes of all tensors at the peak of a step on a batch, without taking them: the task's model
    is made again, of fake tensors."""
    model = made_without_numbers(task.new_model, next(task.model.parameters()).device)
    freeze(model, task.config.training.freeze)
    with reading_numbers():
        return memory_on(task.bind(task.processor, model), batch)


def memory_on(task: Task, batch: Any) -> Counter[MemoryKind]:
    """Return the bytes of all tensors at the peak of a step on a batch: weights, gradients, states of the
    optimizer and activations. Memory that a kernel takes for itself is not seen."""
    config, objective = task.config, task.objective()
    device = next(task.model.parameters()).device
    precision = resolve_precision(config.training.precision, device)
    task.model.train()
    with StepRecorder({}) as recorder:
        optimizer = WatchedOptimizer(task.model, config.optimizer, WHOLE_WEIGHTS, recorder)
        average = make_average(task.model, config.training, WHOLE_WEIGHTS)
        for tensor in average.tensors.values() if average else ():
            recorder.hold(tensor, "averages")
        recorder.start()
        with autocast(device, precision), recomputing(config.training.activation_checkpointing):
            result, _ = objective(batch, starting_carry(objective, batch, None))
        loss = total_loss(result, total_weights(objective, [batch]))
        del result
        recorder.phase = "backward"
        loss.backward()  # type: ignore[no-untyped-call]
        recorder.phase = "update"
        optimizer.step(config.optimizer.lr, 1.0)
    return recorder.peak
