"""A step on micro-batches, compared with the same step on one large batch."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from foveal.config import OptimizerConfig
from foveal.data.core.batching import ExampleBatch
from foveal.training.optim import Optimizer
from foveal.training.step import StepResult, train_step

SGD = OptimizerConfig(name="sgd", clip_norm=0.0)


def trained_step(objective: Any, batches: Sequence[ExampleBatch]) -> StepResult:
    """Take one step on micro-batches."""
    carries, optimizer = [None] * len(batches), Optimizer(objective.model, SGD)
    done, _ = train_step(objective.model, objective, optimizer, batches, carries, lr=0.5, seed=(0,))
    assert done.first_nonfinite is None
    assert done.gradient_norm > 1e-3
    return done


def check_same_step(tasks: Sequence[Any], parts: Sequence[ExampleBatch], whole: ExampleBatch) -> StepResult:
    """Two equal tasks, one trained on the parts and one on the whole."""
    few, one = trained_step(tasks[0], parts), trained_step(tasks[1], [whole])
    assert (few.loss, few.gradient_norm) == pytest.approx((one.loss, one.gradient_norm), abs=1e-10)
    assert few.metrics == pytest.approx(one.metrics, abs=1e-10)
    for first, second in zip(*(task.model.parameters() for task in tasks), strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-10)
    return few
