"""What a training is said to cost, before its first step."""

from typing import Any

import pytest
import torch

from foveal.api.training import cost
from foveal.api.training.batch_sample import BatchSample
from foveal.api.training.cost import (
    LATER_BYTES,
    MOST_SHAPES,
    StepsMemory,
    TrainingCost,
)
from foveal.api.training.head_fit import HeadFit
from foveal.core.allocator import resident_memory
from foveal.data.core.batching import TokenBatch
from foveal.data.text.tokenizers import ByteTokenizer
from foveal.ops.ridge import ridge_memory, ridge_seconds
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.training.dry_run import DryRunResult


def test_memory_counts_the_shapes_and_the_larger_of_step_and_baseline() -> None:
    steps = StepsMemory(kept=300_000_000, passing=100_000_000, per_shape=10_000_000)
    assert steps.peak(2, 0) == 420_000_000 + LATER_BYTES
    assert steps.peak(10_000, 0) == 400_000_000 + 10_000_000 * MOST_SHAPES + LATER_BYTES
    assert steps.peak(2, 99_000_000) == steps.peak(2, 0)
    assert steps.peak(2, 150_000_000) == steps.peak(2, 0) + 50_000_000


class SizedBatches:
    def __init__(self, *sizes: int):
        self.sizes, self.per_epoch = sizes, len(sizes)

    def batch(self, epoch: int, index: int) -> Any:
        return TokenBatch(*torch.zeros(2, 1, self.sizes[index], dtype=torch.int64))


@pytest.mark.parametrize("sizes", [(100, 200, 300, 400), (400, 300, 200, 100), (250, 250, 250, 250)])
def test_the_time_of_a_step_is_that_of_a_batch_of_mean_size(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever batch comes first: each takes a second for 100 tokens."""

    def run(model: Any, objective: Any, batch: Any, config: Any) -> DryRunResult:
        return DryRunResult(1.0, batch.tokens / 100, 0.0, 0, resident_memory())

    monkeypatch.setattr(cost, "dry_run", run)
    task = task_of(load_config("lstm")).bind(ByteTokenizer(), None)
    monkeypatch.setattr(type(task), "objective", lambda self: None)
    _, seconds, memory = cost.measure_steps(task, BatchSample.of(SizedBatches(*sizes)))
    assert seconds == pytest.approx(2.5)
    assert (memory.per_shape == 0) is (len({*sizes}) == 1)


def test_a_training_without_steps_has_no_step_in_its_cost() -> None:
    assert TrainingCost(500_000_000, None).summary("tokens") == (
        "about 500.0 MB (476.8 MiB) of memory; no training steps"
    )
    assert str(HeadFit(1529, 2.0)) == "features of 1,529 rows and the head in closed form: 2 s"


@pytest.mark.parametrize(("rows", "features"), [(1, 1), (40, 3), (3, 40), (700, 600)])
def test_time_and_memory_of_a_baseline_are_estimated(rows: int, features: int) -> None:
    assert 0 < ridge_seconds(rows, features) < 60
    assert 4 * rows * features < ridge_memory(rows, features, 2) < resident_memory()


def test_memory_of_many_classes_is_that_of_their_targets() -> None:
    few, many = (ridge_memory(1000, 100, classes) for classes in (2, 2000))
    assert few < 20_000_000
    assert 6 * 8 * 1000 * 2000 < many < 7 * 8 * 1000 * 2000
