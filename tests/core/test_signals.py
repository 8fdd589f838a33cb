"""SIGINT and SIGTERM in every phase: save, end with the right code, resume bit for bit."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveal.core.signals import Interrupted, SignalHandler
from foveal.store import durable
from foveal.store.checkpoint import load_latest
from foveal.store.durable import Chunk
from foveal.store.plan import Plans
from tests.support.run_fingerprint import differences, fingerprint
from tests.support.toy_training import ToyObjective, toy_config, toy_trainer, train


def strike(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_outside_the_loop_it_ends_at_once(number: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught, SignalHandler():
        strike(number)
    assert caught.value.exit_code == 128 + number
    assert signal.getsignal(number) is before


def test_inside_the_loop_it_waits_for_the_next_poll() -> None:
    reached = []

    def work(signals: SignalHandler) -> None:
        with signals.deferred():
            strike(signal.SIGTERM)
            reached.append("after the signal")
            signals.poll()
            reached.append("after the poll")

    with SignalHandler() as signals, pytest.raises(Interrupted):
        work(signals)
    assert reached == ["after the signal"]


def test_one_that_waits_at_the_end_of_the_loop_is_not_lost() -> None:
    with pytest.raises(Interrupted), SignalHandler() as signals, signals.deferred():
        strike(signal.SIGTERM)


def test_no_library_swallows_it() -> None:
    assert not issubclass(Interrupted, Exception)


def in_phase(phase: str, monkeypatch: pytest.MonkeyPatch, number: int, trainer: Any) -> None:
    """Arranges for one signal in the given phase, near the middle of the run."""
    sent: list[int] = []

    def once(now: bool) -> None:
        if now and not sent:
            sent.append(number)
            strike(number)

    progress = lambda: trainer.state.counters.step  # noqa: E731
    if phase in ("train", "evaluate", "preview"):
        trainer.objective.hook = lambda where, calls: once(where == phase and progress() >= 6)
    elif phase == "backward":
        trainer.model.projection.bias.register_hook(lambda gradient: once(progress() == 6))
    elif phase == "data":
        trainer.batches = Wrapped(trainer.batches, lambda: once(progress() == 6))
    elif phase == "save":
        real = durable.write_synced

        def slow(path: Path, *content: Chunk) -> None:
            real(path, *content)
            once(path.name == "optimizer.safetensors" and progress() >= 6)

        monkeypatch.setattr(durable, "write_synced", slow)
    elif phase == "between":
        trainer.recorder.on_save = lambda step: once(step == 6)
    else:
        raise AssertionError(phase)


class Wrapped:
    def __init__(self, batches: Any, hook: Callable[[], None]):
        self.batches, self.hook, self.per_epoch = batches, hook, batches.per_epoch

    def batch(self, epoch: int, index: int) -> Any:
        self.hook()
        return self.batches.batch(epoch, index)


PHASES = ["data", "train", "backward", "evaluate", "preview", "save", "between"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("phase", PHASES)
def test_a_signal_in_any_phase_saves_and_resumes_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, number: int
) -> None:
    often = 1e-9 if phase in ("save", "between") else 1e9
    config = toy_config(training={"checkpoint_seconds": often})
    whole = fingerprint(train(tmp_path / "whole", config))
    path = tmp_path / "run"
    trainer = toy_trainer(path, config)
    with monkeypatch.context() as patch:
        in_phase(phase, patch, number, trainer)
        with pytest.raises(Interrupted) as caught, SignalHandler() as signals:
            trainer.run(signals)
    assert caught.value.exit_code == 128 + number
    found, damaged = load_latest(path / "checkpoints")
    assert found
    assert not damaged
    step = trainer.state.counters.step
    assert 6 <= step <= 8  # a checkpoint is complete a step later
    assert found.path.name.split("-")[0] == str(step)
    again = train(path)
    assert again.recorder.begun[0][0] == step
    assert differences(fingerprint(again), whole) == []


def test_a_signal_during_the_evaluation_does_not_wait_for_its_end(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path / "run", toy_config())
    seen: list[str] = []

    def hook(where: str, calls: int) -> None:
        seen.append(where)
        if where == "evaluate" and seen.count("evaluate") == 1:
            strike(signal.SIGTERM)

    trainer.objective.hook = hook
    with pytest.raises(Interrupted), SignalHandler() as signals:
        trainer.run(signals)
    assert seen.count("evaluate") == 1, "the second batch was evaluated, too"
    assert trainer.state.counters.last_eval_step == 0


def test_a_second_signal_ends_at_once_and_saves_nothing(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path / "run", toy_config())

    def hook(where: str, calls: int) -> None:
        if calls == 3:
            strike(signal.SIGINT)
            strike(signal.SIGTERM)
            raise AssertionError("it went on")

    trainer.objective.hook = hook
    with pytest.raises(Interrupted) as caught, SignalHandler() as signals:
        trainer.run(signals)
    assert caught.value.exit_code == 143
    assert load_latest(tmp_path / "run" / "checkpoints") == (None, [])


def test_a_signal_before_the_first_step_is_saved_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fingerprint(train(tmp_path / "whole"))
    trainer = toy_trainer(tmp_path / "run")
    real = trainer.folder.write_plans

    def write_plans(plans: Plans) -> None:
        real(plans)
        strike(signal.SIGTERM)

    object.__setattr__(trainer.folder, "write_plans", write_plans)
    with pytest.raises(Interrupted), SignalHandler() as signals:
        trainer.run(signals)
    again = train(tmp_path / "run")
    assert differences(fingerprint(again), whole) == []


def test_a_signal_while_the_end_is_saved_ends_the_command_but_the_run_is_finished(tmp_path: Path) -> None:
    trainer = toy_trainer(tmp_path / "run")
    trainer.recorder.on_save = lambda step: strike(signal.SIGTERM)
    with pytest.raises(Interrupted), SignalHandler() as signals:
        trainer.run(signals)
    assert trainer.recorder.end[:2] == (12, "budget")
    found, _ = load_latest(tmp_path / "run" / "checkpoints")
    assert found
    assert b'"finished": "budget"' in found.files["state.json"].read()


def test_the_hook_is_called_in_every_phase() -> None:
    """The test above would prove nothing if the toy task did not pass through all of them."""
    assert {"train", "evaluate", "preview"} <= set(PHASES)
    assert ToyObjective.__dataclass_fields__["hook"].default is None
