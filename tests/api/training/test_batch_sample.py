"""The sizes of some batches of an epoch."""

import time
from typing import Any

import pytest
import torch

from foveal.api.training import batch_sample
from foveal.api.training.batch_sample import MOST_BATCHES, BatchSample
from foveal.data.core.batching import TokenBatch


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sample, "MOST_SECONDS", float("inf"))


class SizedBatches:
    def __init__(self, *sizes: int):
        self.sizes, self.per_epoch = sizes, len(sizes)

    def batch(self, epoch: int, index: int) -> Any:
        return TokenBatch(*torch.zeros(2, 1, self.sizes[index], dtype=torch.int64))


@pytest.mark.parametrize(
    ("sizes", "another"),
    [
        ((64, 64, 64, 64, 64), None),
        ((64, 9, 64), None),
        ((64,), None),
        ((960, 1010, 871), 1010),
        ((960, 1010, 871, 5, 6), 1010),
        ((1010, 960, 871, 5, 6), 5),
    ],
)
def test_another_size_is_measured_too_if_sizes_vary(sizes: tuple[int, ...], another: int | None) -> None:
    sample = BatchSample.of(SizedBatches(*sizes))
    assert (sample.another and sample.another.tokens) == another
    assert sample.largest.tokens == max(sizes)
    assert sample.mean_tokens == sum(sizes) / len(sizes)


def test_batches_that_take_long_to_make_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sample, "MOST_SECONDS", 0)
    assert BatchSample.of(SizedBatches(*[64] * 99)).tokens == [64, 64]


def test_what_the_first_batch_looks_up_is_not_the_time_of_a_batch() -> None:
    class Lazy(SizedBatches):
        def batch(self, epoch: int, index: int) -> Any:
            time.sleep(0 if index else 0.5)
            return super().batch(epoch, index)

    assert BatchSample.of(Lazy(*[64] * 99)).seconds < 0.25


def test_a_small_last_batch_does_not_count_among_few() -> None:
    sample = BatchSample.of(SizedBatches(*[64] * 99, 1))
    assert sample.tokens == [64] * MOST_BATCHES
