"""What a training is said to cost, before its first step."""

import pytest

from foveal.api.training.cost import (
    LATER_BYTES,
    MOST_SHAPES,
    StepsMemory,
    TrainingCost,
)
from foveal.api.training.head_fit import HeadFit
from foveal.core.allocator import resident_memory
from foveal.ops.ridge import ridge_memory, ridge_seconds


def test_memory_counts_the_shapes_and_the_larger_of_step_and_baseline() -> None:
    steps = StepsMemory(kept=300_000_000, passing=100_000_000, per_shape=10_000_000)
    assert steps.peak(2, 0) == 420_000_000 + LATER_BYTES
    assert steps.peak(10_000, 0) == 400_000_000 + 10_000_000 * MOST_SHAPES + LATER_BYTES
    assert steps.peak(2, 99_000_000) == steps.peak(2, 0)
    assert steps.peak(2, 150_000_000) == steps.peak(2, 0) + 50_000_000


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
