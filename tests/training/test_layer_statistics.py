"""Statistics of layers are measured beside the training: they change no bit of it, and resume with it."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.inspection.histograms.measure import measure_layers
from foveal.store.plan import Plan
from foveal.training import layer_statistics
from foveal.training.layer_statistics import LayerStatistics, statistics_due, unchanged
from foveal.training.slot_steps import total_loss, total_weights
from tests.support.run_fingerprint import differences, fingerprint
from tests.support.toy_training import ToyBatches, ToyObjective, ToyTrainer, toy_config, toy_trainer

STEPS = 12


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture(autouse=True)
def every_third_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_statistics, "EARLY_STEPS", (0, 1, 4))
    monkeypatch.setattr(layer_statistics, "FIRST_GAP", 3)


def measured_trainer(path: Path, seconds: float = 1e-9, probed: bool = True, hook: Any = None) -> ToyTrainer:
    """Return a trainer that measures its model as `layer_probe` does, with batch norm and dropout."""
    made = toy_trainer(path, toy_config(training={"checkpoint_seconds": seconds}), hook=hook)
    batch = ToyBatches(rows=2, seed=7).batch(0, 0)
    objective = ToyObjective(made.model)  # type: ignore[arg-type]

    def loss() -> torch.Tensor:
        torch.manual_seed(random.randrange(3))  # a probe may draw what it likes
        result, _ = objective(batch, None)
        return total_loss(result, total_weights(objective, [batch]))

    def probe() -> dict[str, Any]:
        made.model.train()
        np.random.rand()
        return measure_layers(made.model, loss)

    if probed:
        assert made.state.statistics
        made.statistics = LayerStatistics(made.model, probe, made.state.statistics)
    return made


def run(made: ToyTrainer) -> ToyTrainer:
    made.run(SignalHandler())
    return made


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "statistics.jsonl").read_text().splitlines()]


def test_they_change_no_bit_of_a_training(tmp_path: Path) -> None:
    """Weights, running statistics, optimizer, carries, samples and logs are those without statistics."""
    measured = fingerprint(run(measured_trainer(tmp_path / "measured")))
    plain = fingerprint(run(measured_trainer(tmp_path / "plain", probed=False)))
    assert differences(measured, plain) == ["statistics"]
    assert [one["step"] for one in records(tmp_path / "measured")] == [0, 1, 3, 4, 6, 9, 12]
    assert all("error" not in one for one in records(tmp_path / "measured"))


def random_numbers() -> tuple[Any, Any]:
    """Return the states of the generators of NumPy and torch."""
    state: Any = np.random.get_state()
    return state[1].tolist(), torch.get_rng_state().tolist()


def test_random_generators_modes_and_buffers_are_as_before(tmp_path: Path) -> None:
    made = measured_trainer(tmp_path / "run")
    assert made.statistics
    made.model.eval()
    before = random_numbers()
    buffers = [buffer.clone() for buffer in made.model.buffers()]
    made.statistics.after_step(3, None)
    assert random_numbers() == before
    restored, state = unchanged(made.model), random.getstate()
    with restored:
        random.random()
    assert random.getstate() == state
    assert not any(module.training for module in made.model.modules())
    assert all(map(torch.equal, buffers, made.model.buffers()))
    assert all(weight.grad is None for weight in made.model.parameters())


@pytest.mark.parametrize("seconds", [1e-9, 1e9])
@pytest.mark.parametrize("kills", [[1], [4], [5, 3, 2]])
def test_a_killed_and_resumed_run_has_the_same_file(tmp_path: Path, kills: list[int], seconds: float) -> None:
    run(measured_trainer(tmp_path / "whole", seconds))
    for call in kills:

        def kill(where: str, calls: int, last: int = call) -> None:
            if where == "train" and calls == last:
                raise Killed

        with pytest.raises(Killed):
            run(measured_trainer(tmp_path / "killed", seconds, hook=kill))
    again = run(measured_trainer(tmp_path / "killed", seconds))
    assert records(tmp_path / "killed") == records(tmp_path / "whole")
    assert fingerprint(again)["statistics"] == (tmp_path / "whole" / "statistics.jsonl").read_text()


def test_updates_are_those_of_the_steps(tmp_path: Path) -> None:
    """The norm of an update is that of the difference of the weights around the step."""
    made = measured_trainer(tmp_path / "run")
    weights: list[torch.Tensor] = []
    step = made._train

    def train() -> None:
        weights.append(made.model.projection.weight.detach().clone())  # type: ignore[union-attr, operator]
        step()

    made._train = train  # type: ignore[method-assign]
    run(made)
    first, *others = records(tmp_path / "run")
    assert all(one["update_norm"] is None for one in first["updates"])
    bias = 0.0  # the layer's bias is part of its norm
    for one in others[:-1]:
        change = float((weights[one["step"]] - weights[one["step"] - 1]).norm())
        (logged,) = [part for part in one["updates"] if part["layer"] == "projection"]
        assert logged["update_norm"] >= change * (1 - 1e-6) > bias
        assert logged["update_norm"] < 1.5 * change
        assert logged["weights"] == made.model.projection.weight.numel() + 7  # type: ignore[union-attr, operator]


def test_a_probe_that_fails_is_logged_and_training_goes_on(tmp_path: Path) -> None:
    made = measured_trainer(tmp_path / "run")
    assert made.state.statistics

    def fail() -> dict[str, Any]:
        raise RuntimeError("no\nkernel")

    made.statistics = LayerStatistics(made.model, fail, made.state.statistics)
    run(made)
    assert {one["error"] for one in records(tmp_path / "run")} == {"RuntimeError: no kernel"}
    assert made.state.counters.step == STEPS


def test_a_run_of_an_older_version_goes_on_without_and_a_lost_log_is_named(tmp_path: Path) -> None:
    made = measured_trainer(tmp_path / "old", probed=False)
    (tmp_path / "old" / "statistics.jsonl").unlink()
    made = measured_trainer(tmp_path / "old", probed=False)
    assert made.state.statistics is None
    assert run(made).state.counters.step == STEPS
    assert not (tmp_path / "old" / "statistics.jsonl").exists()

    def kill(where: str, calls: int) -> None:
        if where == "train" and calls == 5:
            raise Killed

    with pytest.raises(Killed):
        run(measured_trainer(tmp_path / "new", hook=kill))
    (tmp_path / "new" / "statistics.jsonl").unlink()
    with pytest.raises(UserError, match=r"statistics\.jsonl: missing"):
        run(measured_trainer(tmp_path / "new", probed=False))


def test_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    due = [step for step in range(64_001) if statistics_due(step, None)]
    assert due[:5] == [0, 10, 30, 100, 200]
    assert 2000 in due
    assert 2200 in due
    assert 2100 not in due
    assert sum(step <= 32_000 for step in due) == 3 + 20 + 10 * 4
    assert sum(step > 32_000 for step in due) == 10
    plan = Plan(57, 50, 0)
    assert [step for step in range(60) if statistics_due(step, plan)][:4] == [0, 10, 30, 57]
