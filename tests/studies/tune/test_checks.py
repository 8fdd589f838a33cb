"""Steps 1 to 3 of a study: the first loss, overfitted rows, and the sweep, with planted faults."""

import copy
import math
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from foveal.core.progress import no_progress
from foveal.core.runtime import random_state
from foveal.store.sealed import unique_state_dict
from foveal.studies.tune.checks import (
    Checks,
    Cost,
    FirstModel,
    OtherFirstWeights,
    has_checks,
    read_checks,
    run_checks,
    write_checks,
)
from foveal.studies.tune.initial_loss import InitialLoss, measure_initial_loss
from foveal.studies.tune.overfit import Overfit, overfit
from foveal.studies.tune.probe import Probe
from foveal.studies.tune.rate_sweep import RateSweep, SweptRate, sweep_rates
from foveal.studies.tune.regularizers import regularizers_off, without_regularizers
from tests.support.untrained_runs import (
    CORPUS,
    DECODER,
    KINDS,
    UntrainedRun,
    untrained_run,
    write_plays,
    write_rows,
)

Start = Callable[..., tuple[UntrainedRun, Probe]]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.chdir(tmp_path)

    def of(*settings: str) -> tuple[UntrainedRun, Probe]:
        run = untrained_run(write_plays(), "lstm", *DECODER, *CORPUS, "training.precision=float32", *settings)
        return run, Probe(run.task, run.task.train_batches(run.prepared.train))

    return of


def never(losses: object) -> bool:
    return False


@pytest.mark.parametrize("lr", [0.01, 1e38])
def test_a_probe_restores_weights_and_random_numbers_exactly(start, lr):
    run, probe = start("model.dropout=0.3")
    weights, numbers = copy.deepcopy(unique_state_dict(run.model)), random_state()
    first = probe.train(lr, 6, never)
    assert (len(first) == 6) != math.isinf(first[-1])
    assert all(torch.equal(weights[name], now) for name, now in unique_state_dict(run.model).items())
    assert all(weight.grad is None for weight in run.model.parameters())
    assert torch.equal(numbers[2], random_state()[2])
    assert numbers[0] == random_state()[0]
    assert probe.train(lr, 6, never) == first


def test_the_first_loss_is_that_of_a_guess_and_large_first_weights_are_said(start):
    run, probe = start()
    by_default = measure_initial_loss(run.task, probe.batches, False)
    outcomes = run.task.num_outcomes
    assert by_default.expected == pytest.approx(math.log(outcomes))
    assert by_default.measured == pytest.approx(by_default.expected, abs=0.1)
    assert by_default.meaning.endswith("as expected")
    with torch.no_grad():
        run.model.projection.weight.mul_(500)
    large = measure_initial_loss(run.task, probe.batches, False)
    assert large.is_too_high
    assert "smaller first weights" in large.meaning
    assert measure_initial_loss(run.task, probe.batches, True).expected is None


def test_rows_are_overfitted_without_regularization(start):
    run, probe = start("model.dropout=0.4", "optimizer.weight_decay=0.5", "optimizer.lr=0.02")
    assert regularizers_off(run.config) == {"model.dropout": 0.0, "optimizer.weight_decay": 0.0}
    with without_regularizers(run.task) as bare:
        assert {module.p for module in run.model.modules() if isinstance(module, torch.nn.Dropout)} == {0.0}
        assert bare.config.optimizer.weight_decay == 0
    assert {module.p for module in run.model.modules() if isinstance(module, torch.nn.Dropout)} == {0.4}
    learned = overfit(probe, 60.0, no_progress)
    assert learned.holds
    assert "are overfitted in" in learned.meaning


def test_a_rate_that_overfits_nothing_is_named_with_one_that_does(start):
    _, probe = start("optimizer.lr=2.0")
    learned = overfit(probe, 60.0, no_progress)
    assert learned.holds
    assert learned.failed_rates[0] == 2.0
    assert "but not at 2" in learned.meaning


def test_one_step_says_nothing_about_a_fall():
    stuck = Overfit(8, 0.02, (4.0,), (), ())
    assert not stuck.holds
    assert stuck.meaning.endswith("there was time for one step only: give a larger --budget")


def test_weights_without_a_gradient_are_named(start):
    run, probe = start("optimizer.lr=0.02")
    run.model.embedding.register_forward_hook(lambda module, inputs, output: output.detach())
    for weight in run.model.embedding.parameters():
        torch.nn.init.zeros_(weight)
    stuck = overfit(probe, 3.0, no_progress)
    assert not stuck.holds
    assert "get no gradient" in stuck.meaning


def test_equal_rows_with_other_labels_are_not_learned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = write_rows(
        "rows.jsonl", text=[f"text {number // 2}" for number in range(40)], label=["yes", "no"] * 20
    )
    encoder = [setting.replace("model.", "model.encoder.") for setting in DECODER]
    run = untrained_run(rows, "text-classification", *encoder, "optimizer.lr=0.02", "data.valid_fraction=0.2")
    probe = Probe(run.task, run.task.train_batches(run.prepared.train))
    stuck = overfit(probe, 3.0, no_progress)
    assert not stuck.holds
    assert "equal inputs may have different answers" in stuck.meaning


@pytest.mark.parametrize(("lr", "way"), [(3.0, "times higher"), (2e-5, "times lower"), (0.02, "near")])
def test_the_sweep_says_how_far_off_a_rate_is(start, lr, way):
    _, probe = start(f"optimizer.lr={lr}")
    sweep = sweep_rates(probe, 30.0, no_progress)
    assert sweep.is_off == (way != "near")
    assert way in sweep.meaning
    assert [rate.lr for rate in sweep.rates] == sorted(rate.lr for rate in sweep.rates)


@pytest.mark.parametrize(
    ("set_lr", "end", "is_off"), [(2.0, 1.9, True), (2.0, 1.7, False), (0.01, 2.3, False), (0.01, 2.6, True)]
)
def test_few_iterations_say_more_against_a_high_rate(set_lr: float, end: float, is_off: bool):
    """From 4 to 1 at the best rate: three quarters of this fall are 2.25, half of it is 1.5."""
    ends = {1e-5: 4.0, 0.1: 1.0, set_lr: end}
    sweep = RateSweep(set_lr, tuple(SweptRate(lr, (4.0, *[ends[lr]] * 9)) for lr in sorted(ends)))
    assert sweep.best.lr == 0.1
    assert sweep.is_off == is_off


def test_checks_are_read_as_they_were_written(start, tmp_path):
    run, probe = start("model.initialization=3", "optimizer.lr=1e37")
    cost = Cost(1.0, 0.1, 0.2, 100, 10.0)
    checks = run_checks(FirstModel(run.task, probe.batches, False, cost), 10.0, no_progress)
    assert not has_checks(tmp_path)
    write_checks(tmp_path, checks)
    assert has_checks(tmp_path)
    assert read_checks(tmp_path) == checks
    assert isinstance(checks, Checks)
    assert checks.by_default is not None


@pytest.mark.parametrize(
    ("first", "end", "at_fault"), [(40.0, 3.9, True), (4.0, 3.9, True), (4.0, 2.2, False)]
)
def test_first_weights_are_at_fault_if_the_usual_ones_learn_far_more(first, end, at_fault):
    def sweep(losses: tuple[float, ...]) -> RateSweep:
        return RateSweep(0.01, (SweptRate(1e-5, (losses[0],) * 10), SweptRate(0.01, losses)))

    by_default = OtherFirstWeights(InitialLoss(4.0, 4.0), sweep((4.0, *[2.0] * 9)))
    learned = Overfit(8, 0.01, (4.0, 0.1), (), ())
    own = sweep((first, *[end] * 9))
    checks = Checks(InitialLoss(first, 4.0), learned, own, by_default, Cost(1.0, 1.0, 1.0, 10, 1.0), 1.0)
    assert checks.initialization_is_at_fault == at_fault


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_can_be_checked(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = KINDS[kind]()
    weights = copy.deepcopy(unique_state_dict(run.model))
    first = FirstModel(
        run.task, run.task.train_batches(run.prepared.train), False, Cost(1.0, 1.0, 1.0, 10, 1.0)
    )
    # 40 steps at the first rate, and fewer at the others, also on a busy machine.
    clock = SimpleNamespace(monotonic=partial(next, count(step=1 / 80)))
    monkeypatch.setattr("foveal.studies.tune.overfit.time", clock)
    checks = run_checks(first, 3.0, no_progress)
    assert math.isfinite(checks.initial.measured)
    assert len(checks.sweep.rates) >= 6
    assert math.isfinite(checks.sweep.best.end)
    assert checks.overfit.losses[-1] < checks.overfit.losses[0]
    assert all(torch.equal(weights[name], now) for name, now in unique_state_dict(run.model).items())
    write_checks(tmp_path, checks)
    assert read_checks(tmp_path) == checks
