"""What models take by the length of their rows: speed and memory of training and of generation."""

import time
from dataclasses import dataclass
from typing import Any

import torch

from foveal.config import Config
from foveal.data.core.prepared_data import PreparedData
from foveal.generation.decoding_loop import generate
from foveal.generation.sampling import Sampling
from foveal.studies.compare.step_size import bound_task, flops_on
from foveal.studies.plan.inference import state_size
from foveal.studies.plan.step_memory import memory_on
from foveal.tasks.base import Task
from foveal.tasks.registry import task_of
from foveal.training.dry_run import dry_run

LENGTHS = (64, 256, 1024)
"""The lengths, in tokens. A batch has as many tokens as the longest, whatever its length."""
GENERATED_TOKENS = 32
"""Tokens whose generation is timed, at the end of a row of each length or as its answer."""
FLOAT_BYTES = 4


@dataclass(frozen=True)
class LengthCost:
    """What a model takes at a length of its rows."""

    length: int
    training_speed: float
    """Tokens a second of a training step."""
    generation_speed: float
    """Tokens a second of a text that is generated from a row of the length."""
    memory: int
    """Bytes of the tensors of a training step."""
    state: int
    """Bytes of the state of a row after a text of the length, in float32: what generation remembers."""
    flops: float
    """Floating-point operations of a training for a token."""


def costs_by_length(
    config: Config, prepared: PreparedData[Any, Any], device: torch.device
) -> list[LengthCost]:
    """Return what a model with new weights takes at each length. Empty if rows of its task have no length."""
    setting = task_of(config).length_setting
    configs = [_with_length(config, setting, length) for length in LENGTHS] if setting else []
    tasks = (bound_task(each, prepared, device) for each in configs)
    return [_cost(task, length) for task, length in zip(tasks, LENGTHS, strict=False)]


def _with_length(config: Config, setting: str, length: int) -> Config:
    """Return the settings with another length of the longest row."""
    return config.model_copy(update={"data": config.data.model_copy(update={setting: length})})


def _cost(task: Task, length: int) -> LengthCost:
    batch = task.longest_batch(LENGTHS[-1] // length)
    step = dry_run(task.model, task.objective(), batch, task.config)
    return LengthCost(
        length,
        batch.tokens / (step.seconds + step.update_seconds),
        _generation_speed(task, batch),
        sum(memory_on(task, batch).values()),
        _state_bytes(task, batch, length),
        flops_on(task, batch),
    )


def _state_bytes(task: Task, batch: Any, length: int) -> int:
    """Return the bytes of the state of a row that has written a text of a length."""
    with torch.no_grad():
        start = task.decoding_start(batch, 1)
        return FLOAT_BYTES * state_size(start.head.init_state(start.memory, 1, length))


def _generation_speed(task: Task, batch: Any) -> float:
    """Return the tokens a second of a text. The time of what is read before, and of a first token, is left
    out."""
    task.model.eval()
    with torch.no_grad():
        start = task.decoding_start(batch, GENERATED_TOKENS)
        prompts, sampling = [start.prompt], Sampling(seed=0)
        tokens = generate(start.head, prompts, [""], GENERATED_TOKENS, sampling, memory=start.memory)
        next(tokens)
        started = time.perf_counter()
        count = sum(1 for _ in tokens)
    return count / (time.perf_counter() - started)
