"""What callbacks hear, and what happens if one fails."""

import signal
from pathlib import Path
from typing import Any

import pytest

from foveal.core.callbacks import Callback, Record, StopTraining
from foveal.core.errors import UserError
from foveal.core.signals import Interrupted, SignalHandler
from foveal.store.checkpoint import load_latest
from foveal.training.callbacks import EVENTS, CallbackFailed, CallbackList, check_callbacks
from tests.support.run_fingerprint import differences, fingerprint, lines
from tests.support.toy_training import toy_config, toy_trainer, train

FOUR_STEPS = {"budget": "4steps"}


class Listener(Callback):
    """Notes the names of all events, and raises `error` in `event` from call `count` on."""

    def __init__(self, event: str = "", error: BaseException | None = None, count: int = 1):
        self.event, self.error, self.left = event, error, count
        self.heard: list[str] = []
        self.records: dict[str, Any] = {}

    def __getattribute__(self, name: str) -> Any:
        if name not in EVENTS:
            return super().__getattribute__(name)

        def listen(*facts: Any) -> None:
            self.heard.append(name)
            self.records[name] = facts[-1]
            if name == self.event and self.error is not None:
                self.left -= 1
                if self.left <= 0:
                    raise self.error

        return listen


def test_the_order_of_events(tmp_path: Path) -> None:
    listener = Listener()
    train(tmp_path / "run", toy_config(training=FOUR_STEPS), callbacks=[listener])
    evaluation = ["on_evaluating", "on_evaluating", "on_evaluation", "on_sample"]
    two_steps = ["on_step", "on_step", *evaluation]
    assert listener.heard == [
        *("on_start", "on_plan", "on_sample"),
        *two_steps,
        *two_steps,
        *("on_checkpoint", "on_end"),
    ]


def test_records_are_the_lines_of_the_log(tmp_path: Path) -> None:
    listener = Listener()
    done = train(tmp_path / "run", toy_config(training=FOUR_STEPS), callbacks=[listener])
    *_, step, evaluation = lines(done.folder.metrics)
    assert listener.records["on_evaluation"] == evaluation | {"best_step": done.state.counters.best_step}
    record = listener.records["on_step"]
    assert record.keys() - step.keys() == {"seconds_left", "seconds_left_in_steps"}
    assert step == {key: record[key] for key in step}
    assert listener.records["on_end"]["reason"] == "budget"


@pytest.mark.parametrize("event", ["on_step", "on_evaluation", "on_evaluating", "on_sample", "on_checkpoint"])
def test_a_callback_that_fails_is_named_and_nothing_is_lost(tmp_path: Path, event: str) -> None:
    """The run resumes as if the callback had not been there."""
    whole = fingerprint(train(tmp_path / "whole", toy_config(training=FOUR_STEPS)))
    cause, other = ValueError("no\nsuch key"), Listener()
    broken = Listener(event, cause, count=1 if event == "on_checkpoint" else 2)
    config = toy_config(training=FOUR_STEPS)
    with pytest.raises(CallbackFailed) as failure:
        train(tmp_path / "run", config, callbacks=[broken, other])
    done = {"on_step": 2, "on_evaluating": 2, "on_evaluation": 4, "on_sample": 2, "on_checkpoint": 4}[event]
    assert str(failure.value) == (
        f"the callback Listener.{event} failed: ValueError: no such key; step {done} is saved"
    )
    assert failure.value.__cause__ is cause
    assert other.records["on_end"]["reason"] == "failed"
    if event == "on_checkpoint":
        saved, _ = load_latest(tmp_path / "run" / "checkpoints")
        assert saved is not None
    else:
        assert differences(fingerprint(train(tmp_path / "run", config)), whole) == []


def test_a_callback_that_fails_at_the_start_leaves_the_run(tmp_path: Path) -> None:
    with pytest.raises(CallbackFailed, match=r"Listener\.on_start failed: KeyError: 'a'$"):
        train(tmp_path / "run", callbacks=[Listener("on_start", KeyError("a"))])
    assert not any((tmp_path / "run" / "checkpoints").iterdir())


def test_every_callback_hears_the_end_though_one_fails(tmp_path: Path) -> None:
    broken, other = Listener("on_end", OSError(5, "disk")), Listener()
    with pytest.raises(CallbackFailed, match="on_end failed"):
        train(tmp_path / "run", toy_config(training=FOUR_STEPS), callbacks=[broken, other])
    assert other.heard[-1] == "on_end"


def test_our_own_errors_and_interruptions_pass(tmp_path: Path) -> None:
    for number, error in enumerate([UserError("mend it"), Interrupted(signal.SIGINT)]):
        with pytest.raises(type(error)) as failure:
            train(tmp_path / str(number), callbacks=[Listener("on_step", error)])
        assert failure.value is error


def test_an_interruption_ends_with_its_reason(tmp_path: Path) -> None:
    signals, listener = SignalHandler(), Listener()
    trainer = toy_trainer(tmp_path / "run", callbacks=[listener])
    trainer.recorder.on_save = None
    signals.pending = signal.SIGTERM
    with pytest.raises(Interrupted):
        trainer.run(signals)
    assert listener.heard == ["on_start", "on_checkpoint", "on_end"]
    assert listener.records["on_end"]["reason"] == "stopped"


@pytest.mark.parametrize(("event", "step"), [("on_step", 1), ("on_evaluation", 2), ("on_start", 0)])
def test_a_callback_can_finish_the_training(tmp_path: Path, event: str, step: int) -> None:
    stop = Listener(event, StopTraining())
    done = train(tmp_path / "run", callbacks=[stop])
    assert done.recorder.end[:2] == (step, "callback")
    with pytest.raises(UserError, match=f"finished after {step} steps"):
        train(tmp_path / "run")


def test_a_block_around_training_and_test_ends_once() -> None:
    listener = Listener()
    callbacks = CallbackList([listener])
    with callbacks.running():
        with callbacks.running():
            callbacks.end = {"reason": "budget"}
        callbacks.emit(Callback.on_test, {"loss": 1.0})
    assert listener.heard == ["on_test", "on_end"]
    with callbacks.running():
        pass
    assert listener.heard == ["on_test", "on_end"], "no training has begun"


class WithTypo(Callback):
    def on_steps(self, record: Record) -> None: ...


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (WithTypo(), "callbacks: WithTypo.on_steps: no such event; did you mean 'on_step'?"),
        (Listener, "callbacks: expected an object: Listener(), not Listener"),
        (
            print,
            "callbacks: expected objects with methods such as on_step (those of foveal.Callback), not "
            "builtin_function_or_method",
        ),
    ],
)
def test_what_is_no_callback_is_refused(callback: object, message: str) -> None:
    with pytest.raises(UserError) as failure:
        check_callbacks([Callback(), callback])
    assert str(failure.value) == message
