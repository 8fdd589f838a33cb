"""Slots that read the whole batch wait for each other, each with its own noise and gradients."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foveal.core.runtime import seed_everything
from foveal.core.whole_batch import current_slot, gather_slots
from foveal.distributed.lockstep import run_slots
from foveal.distributed.world import ONE_PROCESS

SLOTS = 3


def run(work: Callable[[int], object], weights: list[Tensor] | None = None) -> list[object]:
    works = [lambda slot=slot: work(slot) for slot in range(SLOTS)]
    return run_slots(works, 0, SLOTS, weights or [], ONE_PROCESS)


def test_each_slot_reads_all_in_order() -> None:
    def work(slot: int) -> list[float]:
        once = gather_slots(torch.tensor(float(slot)))
        again = gather_slots(once.sum() * 10**slot)
        return again.tolist()

    assert run(work) == [[3.0, 30.0, 300.0]] * SLOTS
    assert current_slot() is None


def test_a_whole_batch_is_a_single_slot() -> None:
    assert gather_slots(torch.tensor([1.0, 2.0])).tolist() == [[1.0, 2.0]]


def test_noise_is_that_of_the_slot_alone() -> None:
    """As if it had not waited."""

    def noise(slot: int, waits: bool) -> list[float]:
        seed_everything("noise", slot)
        numbers = [random.random(), float(np.random.rand()), float(torch.rand(()))]
        if waits:
            gather_slots(torch.zeros(()))
        return [*numbers, random.random(), float(np.random.rand()), float(torch.rand(()))]

    assert run(lambda slot: noise(slot, waits=True)) == [noise(slot, waits=False) for slot in range(SLOTS)]


def test_gradients_flow_to_all_slots() -> None:
    """The loss of each slot depends on the values of all, and gradients do not mix."""
    weight = nn.Parameter(torch.tensor(2.0))
    inputs = torch.tensor([1.0, 2.0, 3.0])

    def work(slot: int) -> float:
        weight.grad = None
        everyone = gather_slots(weight * inputs[slot])
        (everyone.square().sum() * (slot + 1)).backward()
        assert weight.grad is not None
        return float(weight.grad)

    # The derivative of (1 + 2 + 3) sum_s (w x_s)^2 by way of slot s is 12 w x_s^2.
    assert run(work, [weight]) == [24.0, 96.0, 216.0]


def test_a_slot_that_fails_ends_the_others() -> None:
    ended = []

    def work(slot: int) -> None:
        try:
            gather_slots(torch.zeros(()))
            if slot == 1:
                raise ValueError("slot 1 is wrong")
            gather_slots(torch.zeros(()))
        finally:
            ended.append(slot)

    with pytest.raises(ValueError, match="slot 1 is wrong"):
        run(work)
    assert sorted(ended) == [0, 1, 2]
    assert current_slot() is None


def test_slots_that_do_not_all_wait_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="some slots"):
        run(lambda slot: gather_slots(torch.zeros(())) if slot else None)
