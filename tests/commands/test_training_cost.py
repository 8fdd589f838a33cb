"""What a training is said to cost, before its first step."""

from types import SimpleNamespace
from typing import Any

import pytest

from foveal.commands.head_fit import HeadFit
from foveal.commands.training_cost import EQUAL_GROWTH, VARYING_GROWTH, TrainingCost, memory_growth
from foveal.core.runtime import resident_memory
from foveal.ops.ridge import ridge_memory, ridge_seconds


class SizedBatches:
    def __init__(self, *sizes: int):
        self.sizes, self.per_epoch = sizes, len(sizes)

    def batch(self, epoch: int, index: int) -> Any:
        return SimpleNamespace(tokens=self.sizes[index])


@pytest.mark.parametrize(
    ("sizes", "growth"),
    [
        ((64, 64, 64, 64, 64), EQUAL_GROWTH),
        ((64, 9, 64), EQUAL_GROWTH),
        ((64,), EQUAL_GROWTH),
        ((960, 1010, 871), VARYING_GROWTH),
    ],
)
def test_memory_grows_more_if_batches_have_various_sizes(sizes: tuple[int, ...], growth: float) -> None:
    assert memory_growth(SizedBatches(*sizes)) == growth


def test_a_training_without_steps_has_no_step_in_its_cost() -> None:
    assert TrainingCost(500_000_000, None).summary("tokens") == (
        "about 500.0 MB (476.8 MiB) of memory; no training steps"
    )
    assert str(HeadFit(1529, 2.0)) == "features of 1,529 rows and the head in closed form: 2 s"


@pytest.mark.parametrize(("rows", "features"), [(1, 1), (40, 3), (3, 40), (700, 600)])
def test_time_and_memory_of_a_baseline_are_estimated(rows: int, features: int) -> None:
    assert 0 < ridge_seconds(rows, features) < 60
    assert 4 * rows * features < ridge_memory(rows, features) < resident_memory()
