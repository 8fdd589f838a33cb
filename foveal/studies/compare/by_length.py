"""What language models take by the length of their context: speed of training and generation, and memory."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from foveal.config import Config
from foveal.data.core.prepared_data import PreparedData
from foveal.generation.decoding_loop import generate
from foveal.generation.sampling import Sampling
from foveal.studies.compare.step_size import bound_task, flops_on, memory_on
from foveal.training.dry_run import dry_run

LENGTHS = (64, 256, 1024)
"""The lengths, in tokens. A batch has as many tokens as the longest, whatever its length."""
GENERATED_TOKENS = 32
"""Tokens whose generation is timed, after a prompt of each length."""


@dataclass(frozen=True)
class LengthCost:
    """What a model takes at a length of context."""

    length: int
    training_speed: float
    """Tokens a second of a training step."""
    generation_speed: float
    """Tokens a second of a text after a prompt of the length."""
    memory: int
    """Bytes of the tensors of a training step."""
    flops: float
    """Floating-point operations of a training for a token."""


def costs_by_length(
    config: Config, prepared: PreparedData[Any, Any], device: torch.device
) -> list[LengthCost]:
    """Return what a language model with new weights takes at each length that the training text has."""
    return [
        _cost(_at_length(config, length), prepared, device)
        for length in LENGTHS
        if len(prepared.train) > 2 * length
    ]


def _at_length(config: Config, length: int) -> Config:
    """Return the settings with another length, and with batches of which rows can be left out."""
    data = config.data.model_copy(update={"context_length": length, "batch_tokens": 2 * LENGTHS[-1]})
    return config.model_copy(update={"data": data})


def _cost(config: Config, prepared: PreparedData[Any, Any], device: torch.device) -> LengthCost:
    task, length = bound_task(config, prepared, device), config.data.context_length
    batch = task.train_batches(prepared.train).batch(0, 0).cut(slice(0, LENGTHS[-1] // length))
    step = dry_run(task.model, task.objective(), batch, config)
    return LengthCost(
        length,
        batch.tokens / (step.seconds + step.update_seconds),
        _generation_speed(task.model, prepared.train[: length - GENERATED_TOKENS]),
        memory_on(task, batch),
        flops_on(task, batch),
    )


def _generation_speed(model: Any, prompt: Any) -> float:
    """Return the tokens a second after a prompt. The time of the prompt and of a first token is left out."""
    model.eval()
    prompts = [np.asarray(prompt, np.int64)]
    with torch.no_grad():
        tokens = generate(model, prompts, [""], GENERATED_TOKENS, Sampling(seed=0))
        next(tokens)
        started = time.perf_counter()
        count = sum(1 for _ in tokens)
    return count / (time.perf_counter() - started)
