"""What is measured before training: the update too, and nothing is changed by it."""

import time
from typing import Any

import pytest
import torch

from foveal.core.allocator import resident_memory
from foveal.core.runtime import peak_memory
from foveal.tasks.config import from_tables
from foveal.training.dry_run import dry_run
from foveal.training.optim import Optimizer
from tests.support.optimizer_names import OPTIMIZER_NAMES
from tests.support.toy_training import ToyBatches, ToyModel, ToyObjective


@pytest.mark.parametrize("name", OPTIMIZER_NAMES)
def test_the_weights_stay_bit_for_bit(name: str) -> None:
    model = ToyModel()
    before = {key: weight.clone() for key, weight in model.state_dict().items()}
    config = from_tables({"optimizer": {"name": name, "lr": 0.5, "weight_decay": 0.1}})
    first = dry_run(model, ToyObjective(model), ToyBatches().batch(0, 0), config)
    assert first.seconds > 0
    assert first.update_seconds > 0
    for key, weight in model.state_dict().items():  # the norm's running statistics too
        assert torch.equal(weight, before[key])
    assert all(weight.grad is None for weight in model.parameters())


def test_the_loss_is_the_first_and_the_update_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch, config = ToyModel(dropout=0.0, norm=False), ToyBatches().batch(0, 0), from_tables({})
    task, step = ToyObjective(model), Optimizer.step

    def slow(self: Optimizer, lr: float, norm: float) -> None:
        time.sleep(0.05)
        step(self, lr, norm)

    monkeypatch.setattr(Optimizer, "step", slow)
    first = dry_run(model, task, batch, config)
    total, weight = task(batch, task.start(batch))[0].metrics["loss"]
    assert first.loss == pytest.approx(total / weight, rel=1e-6)
    assert first.update_seconds >= 0.05


def test_the_memory_is_the_peak_of_the_process() -> None:
    """Not only what the backward pass keeps: a forward pass took ten times as much as was said."""

    class Wasteful(ToyObjective):
        def __call__(self, batch: Any, carry: Any) -> Any:
            torch.ones(1 << 26).exp_().sum()  # 256 MB that are free again at once
            return super().__call__(batch, carry)

    model = ToyModel()
    before = resident_memory()
    told = dry_run(model, Wasteful(model), ToyBatches().batch(0, 0), from_tables({})).memory_bytes
    assert before + (3 << 26) < told == pytest.approx(peak_memory(), rel=0.05)


@pytest.mark.parametrize(("seconds", "calls"), [(0.0, 2), (0.6, 1)])
def test_a_slow_pass_is_not_repeated(seconds: float, calls: int) -> None:
    class Slow(ToyObjective):
        def __call__(self, batch: Any, carry: Any) -> Any:
            time.sleep(seconds)
            return super().__call__(batch, carry)

    model = ToyModel()
    objective = Slow(model)
    dry_run(model, objective, ToyBatches().batch(0, 0), from_tables({}))
    assert objective.calls == calls
