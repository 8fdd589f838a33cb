"""The loop: budgets, evaluation, the best weights, averages, early stopping, refusals."""

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from foveal.config import ConfigError
from foveal.core.errors import RunFailed
from foveal.core.signals import Interrupted, SignalHandler
from foveal.core.stored_tensor import in_one_piece
from foveal.store.run import open_run
from foveal.store.sealed import load_weights, open_tensors, unique_state_dict
from foveal.tasks.config import load_config
from foveal.training.averaging import CheckpointAverage, ExponentialMovingAverage
from foveal.training.evaluate import evaluate
from tests.support.run_fingerprint import differences, fingerprint, lines
from tests.support.toy_training import ToyBatches, ToyModel, ToyObjective, toy_config, toy_trainer, train


@pytest.mark.parametrize(
    ("budget", "grad_accumulation", "steps"),
    [("7steps", 1, 7), ("2epochs", 1, 12), ("2epochs", 3, 12), ("1.5epochs", 1, 9), ("100tokens", 1, 7)],
)
def test_counted_budgets(tmp_path: Path, budget: str, grad_accumulation: int, steps: int) -> None:
    done = train(
        tmp_path / "run", toy_config(training={"budget": budget, "grad_accumulation": grad_accumulation})
    )
    assert done.recorder.end[:2] == (steps, "budget")
    assert len(done.recorder.steps) == steps
    assert done.recorder.steps[-1]["tokens"] == steps * grad_accumulation * 15


def test_a_time_budget_counts_steps_only(tmp_path: Path) -> None:
    """Slow evaluations do not shorten training: half a second of steps, with 20 ms in each."""
    import time

    evaluations = []

    def slow(where: str, calls: int) -> None:
        time.sleep(0.02 if where == "train" else 0.1)
        evaluations.append(where)

    config = toy_config(training={"budget": "0.5s", "evaluate_every": 4}, schedule={"warmup_steps": 2})
    done = train(tmp_path / "run", config, hook=slow)
    assert evaluations.count("evaluate") >= 4
    assert done.state.counters.seconds == pytest.approx(0.5, abs=0.2)
    assert done.recorder.plans[0].decided_at > done.recorder.plans[0].total_steps // 3


def test_the_best_weights_are_kept_and_said(tmp_path: Path) -> None:
    config = toy_config(optimizer={"lr": 0.3}, training={"ema_decay": 0.0, "budget": "20steps"})
    done = train(tmp_path / "run", config)
    losses = {record["step"]: record["loss"] for record, _ in done.recorder.evaluations}
    best = min(losses, key=losses.__getitem__)
    assert best != 20, "the last weights are the best: nothing to choose"
    assert done.recorder.end[2:] == (best, losses[best])
    tensors, facts = open_tensors(done.folder.weights.read_bytes(), "")
    assert facts == {"which": "best", "step": best, "loss": losses[best]}
    net = ToyModel()
    load_weights(net, tensors, "")
    means = evaluate(net, ToyObjective(net), ToyBatches(per_epoch=2, seed=99))
    assert means["loss"] == losses[best]


def test_without_validation_the_last_weights_are_kept(tmp_path: Path) -> None:
    done = train(tmp_path / "run", toy_config(training={"ema_decay": 0.0}), valid=False)
    tensors, facts = open_tensors(done.folder.weights.read_bytes(), "")
    assert facts == {"which": "last", "step": 12, "loss": None}
    assert all(torch.equal(tensors[name], value) for name, value in unique_state_dict(done.model).items())
    assert done.recorder.evaluations == []
    assert len(done.recorder.samples) == 7


def test_the_first_sample_is_of_the_first_weights_and_changes_nothing(tmp_path: Path) -> None:
    done = train(tmp_path / "run", toy_config(training={"budget": "4steps"}))
    assert [step for step, _ in done.recorder.samples] == [0, 2, 4]
    assert [record["step"] for record, _ in done.recorder.evaluations] == [2, 4]
    without = toy_trainer(tmp_path / "without", toy_config(training={"budget": "4steps"}))
    without.state.counters.last_preview_step = 0
    without.run(SignalHandler())
    assert [step for step, _ in without.recorder.samples] == [2, 4]
    assert without.recorder.samples == done.recorder.samples[1:]
    assert without.folder.weights.read_bytes() == done.folder.weights.read_bytes()


@pytest.mark.parametrize("during", [False, True], ids=["before it", "during it"])
def test_stopped_at_the_first_sample_it_is_written_once(tmp_path: Path, during: bool) -> None:
    whole = fingerprint(train(tmp_path / "whole"))
    signals = SignalHandler()

    def stop(where: str = "preview", calls: int = 0) -> None:
        signals.pending = signal.SIGTERM

    stopped = toy_trainer(tmp_path / "run", hook=stop if during else None)
    if not during:
        stop()
    with pytest.raises(Interrupted):
        stopped.run(signals)
    assert stopped.state.counters.step == 0
    assert differences(fingerprint(train(tmp_path / "run")), whole) == []


def test_a_preview_that_fails_is_told_and_ends_nothing(tmp_path: Path) -> None:
    def fail(place: str, calls: int) -> None:
        if place == "preview" and calls:
            raise RunFailed("these weights can't write")

    done = train(tmp_path / "run", toy_config(training={"budget": "4steps"}), hook=fail)
    assert done.state.counters.finish_reason == "budget"
    told = [text for step, text in done.recorder.samples if step]
    assert told == ["no preview: these weights can't write"] * 2
    assert open_run(tmp_path / "run").samples.read_text().count("can't write") == 2


def test_the_average_is_evaluated_and_kept_and_the_weights_go_on(tmp_path: Path) -> None:
    done = train(tmp_path / "run", toy_config(training={"budget": "2steps", "ema_decay": 0.9}))
    average = done.state.average
    assert average
    tensors, facts = open_tensors(done.folder.weights.read_bytes(), "")
    assert facts["which"] == "best average"
    for name, value in average.tensors.items():
        assert torch.equal(tensors[name], value)
        assert not torch.equal(done.model.state_dict()[name], value)


def test_the_average_is_the_written_out_sum() -> None:
    net = ToyModel(dtype=torch.float64)
    average = ExponentialMovingAverage(net, 0.3)
    expected, weight = net.hidden.weight.detach().clone(), net.hidden.weight
    for step in range(6):
        with torch.no_grad():
            weight.add_(torch.randn_like(weight))
        average.update(step)
        decay = min(0.3, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weight.detach()
    torch.testing.assert_close(average.tensors["hidden.weight"], expected)
    before = weight.detach().clone()

    def interrupted() -> None:
        with average.applied():
            torch.testing.assert_close(weight.detach(), expected)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert torch.equal(weight, before)


def test_running_statistics_are_averaged_with_the_weights() -> None:
    norm = nn.BatchNorm1d(2)
    average = ExponentialMovingAverage(norm, 0.3)
    norm(torch.randn(8, 2))
    statistics = norm.state_dict()["running_mean"].clone()
    average.update(100)
    with average.applied():
        torch.testing.assert_close(norm.state_dict()["running_mean"], 0.7 * statistics)
    assert torch.equal(norm.state_dict()["running_mean"], statistics)


def test_the_mean_of_the_last_evaluations_is_kept() -> None:
    """Of those that are there; a second look after the same update, as after a resume, counts once."""
    net = ToyModel(dtype=torch.float64)
    last, weight, seen = CheckpointAverage(net, 3), net.hidden.weight, []
    with last.applied():
        first = weight.detach().clone()
    assert torch.equal(first, weight)
    for step in (2, 4, 6, 8):
        with torch.no_grad():
            weight.add_(torch.randn_like(weight))
        seen.append(weight.detach().clone())
        last.on_evaluation(step)
        last.on_evaluation(step)
        with last.applied():
            torch.testing.assert_close(weight.detach(), torch.stack(seen[-3:]).mean(0))
        assert torch.equal(weight, seen[-1])
    again = CheckpointAverage(net, 3)
    again.load(in_one_piece(last.tensors), "")
    torch.testing.assert_close(again.averaged_weights(), last.averaged_weights())


@pytest.mark.parametrize("where", ["train", "evaluate", "preview"])
def test_a_run_with_a_mean_of_evaluations_resumes_alike(tmp_path: Path, where: str) -> None:
    """Stopped in the middle of an evaluation too: what was taken in is not taken twice."""
    config = toy_config(
        training={"budget": "8steps", "ema_decay": 0.0, "average_checkpoints": 2, "evaluate_every": 2}
    )
    whole = train(tmp_path / "whole", config)
    assert open_tensors(whole.folder.weights.read_bytes(), "")[1]["which"] == "best average"
    signals = SignalHandler()

    def stop(now: str, calls: int) -> None:
        if now == where and calls == 4:
            signals.pending = signal.SIGTERM

    with pytest.raises(Interrupted):
        toy_trainer(tmp_path / "run", config, hook=stop).run(signals)
    assert differences(fingerprint(train(tmp_path / "run", config)), fingerprint(whole)) == []


def test_two_means_are_refused() -> None:
    with pytest.raises(ConfigError, match="two means"):
        toy_config(training={"ema_decay": 0.9, "average_checkpoints": 5})


def test_early_stopping(tmp_path: Path) -> None:
    config = toy_config(optimizer={"lr": 0.3}, training={"budget": "100steps", "patience": 3})
    done = train(tmp_path / "run", config)
    step, reason, best_step, _ = done.recorder.end
    assert reason == "patience"
    assert step == best_step + 3 * 2
    assert [best for _, best in done.recorder.evaluations[-4:]] == [best_step] * 4


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_the_last_weights_are_kept_if_the_config_says_so(tmp_path: Path, decay: float) -> None:
    """At a rate that diverges, the lowest loss comes first; the run keeps the last weights, and evaluates."""
    settings: Any = {"budget": "20steps", "keep": "last", "ema_decay": decay}
    done = train(tmp_path / "run", toy_config(optimizer={"lr": 0.3}, training=settings))
    assert done.recorder.end[1:] == ("budget", None, None)
    losses = [record["loss"] for record in lines(done.folder.metrics) if record["kind"] == "evaluation"]
    assert losses[-1] > min(losses)
    tensors, facts = open_tensors(done.folder.weights.read_bytes(), "")
    assert (facts["which"], facts["step"]) == ("last average" if decay else "last", 20)
    if not decay:
        last = done.model.state_dict()
        assert all(torch.equal(tensors[name], last[name]) for name in tensors)


def test_patience_is_for_the_best_weights() -> None:
    with pytest.raises(ConfigError, match=r"training\.patience is not read, since training\.keep=last"):
        load_config("lstm", ["training.keep=last", "training.patience=3"])


def test_a_validation_loss_that_is_not_finite_is_never_the_best(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path / "run", toy_config(training={"ema_decay": 0.0}))

    def spoil(module: Any, inputs: Any, output: Any) -> Any:
        return output if module.training else (output[0] * float("nan"), output[1])

    trainer.model.register_forward_hook(spoil)
    trainer.objective.preview = lambda step: None  # type: ignore[method-assign]
    trainer.run(SignalHandler())
    assert trainer.recorder.end[2:] == (None, None)
    assert open_tensors(trainer.folder.weights.read_bytes(), "")[1]["which"] == "last"
    assert [r["loss"] for r in lines(trainer.folder.metrics) if r["kind"] == "evaluation"] == [None] * 6


def test_evaluation_changes_nothing_and_repeats() -> None:
    net = ToyModel()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    batches = ToyBatches(per_epoch=4, seed=7)
    first = evaluate(net, ToyObjective(net), batches)
    assert first == evaluate(net, ToyObjective(net), batches)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_evaluation_carries_the_state_and_weighs_by_tokens() -> None:
    """Against one pass over the joined chunks, written out."""
    net = ToyModel(dropout=0.0, norm=False, dtype=torch.float64)
    batches = ToyBatches(per_epoch=3, length=100, seed=7)
    parts = [batches.batch(0, index) for index in range(3)]
    logits, _ = net(torch.cat([part.inputs for part in parts], 1), net.first.expand(3, 6))
    targets = torch.cat([part.targets for part in parts], 1)
    total = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    expected = float(total.detach()) / float((targets > 0).sum())
    assert evaluate(net, ToyObjective(net), batches)["loss"] == pytest.approx(expected, abs=1e-12)


class Spoiler:
    """The gradient of the projection is NaN at the given steps (updates done before)."""

    def __init__(self, trainer: Any, steps: set[int]):
        self.trainer, self.steps = trainer, steps
        trainer.model.projection.bias.register_hook(self)

    def __call__(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * float("nan") if self.trainer.state.counters.step in self.steps else gradient


def test_a_refused_step_is_counted_and_training_goes_on(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path / "run", toy_config(training={"max_nonfinite_steps": 3}))
    Spoiler(trainer, {3, 4, 8, 9})
    trainer.run(SignalHandler())
    refused = [(record["step"], record["in_a_row"]) for record in trainer.recorder.skipped]
    assert refused == [(4, 1), (5, 2), (9, 1), (10, 2)]
    assert {r["culprit"] for r in trainer.recorder.skipped} == {"gradient of projection.bias"}
    assert trainer.recorder.end[:2] == (12, "budget")
    assert len(trainer.recorder.steps) == 8
    kinds = [record["kind"] for record in lines(trainer.folder.metrics)]
    assert kinds.count("refused") == 4


def test_too_many_refused_steps_in_a_row_end_the_run(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path / "run", toy_config(training={"max_nonfinite_steps": 3}))
    Spoiler(trainer, set(range(5, 99)))
    with pytest.raises(RunFailed) as error:
        trainer.run(SignalHandler())
    assert "3 consecutive steps" in str(error.value)
    assert "step 8 in gradient of projection.bias" in str(error.value)
    assert "lower optimizer.lr" in str(error.value)


def test_tied_weights_are_saved_once_and_loaded_into_both(tmp_path: Path) -> None:
    net = ToyModel(norm=False)
    net.input.weight = net.hidden.weight
    names = unique_state_dict(net).keys()
    assert len(names & {"input.weight", "hidden.weight"}) == 1
    other = ToyModel(norm=False)
    other.input.weight = other.hidden.weight
    with torch.no_grad():
        other.hidden.weight.zero_()
    load_weights(other, {name: value.clone() for name, value in unique_state_dict(net).items()}, "")
    assert torch.equal(other.input.weight, net.hidden.weight)


def test_a_refused_step_leaves_the_average(tmp_path: Path) -> None:
    averages = []
    for budget, refused in (("1step", set[int]()), ("2steps", {1})):
        config = toy_config(training={"budget": budget}, schedule={"name": "constant"})
        trainer = toy_trainer(tmp_path / budget, config)
        Spoiler(trainer, refused)
        trainer.run(SignalHandler())
        assert trainer.state.average
        averages.append(trainer.state.average.tensors)
    first, second = averages
    assert all(torch.equal(first[name], second[name]) for name in first)
