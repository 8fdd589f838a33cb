"""Checkpoints are written beside the training: from a copy, one at a time, and no error is lost."""

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest

from foveal.core.errors import RunFailed
from foveal.core.signals import Interrupted, SignalHandler
from foveal.store import durable
from foveal.store.checkpoint import load_latest
from foveal.store.durable import Chunk
from foveal.training.trainer import Trainer
from tests.support.run_fingerprint import differences, fingerprint
from tests.support.saved_files import contents
from tests.support.toy_training import ToyTrainer, toy_config, toy_trainer, train

SECONDS = 20
"""The longest wait for another thread."""
CONFIG = {"budget": "9steps", "evaluate_every": 3}


def saving_at(path: Path, step: int, then: Callable[[ToyTrainer, int], None]) -> ToyTrainer:
    """Return a trainer that begins to write a checkpoint after `step` steps, and calls `then` before each
    later step."""
    trainer = toy_trainer(path, toy_config(training=CONFIG))

    def hook(where: str, calls: int) -> None:
        if where == "train" and calls - 1 == step:
            trainer._saving.begin()
        if where == "train" and calls - 1 > step:
            then(trainer, calls - 1)

    trainer.objective.hook = hook
    return trainer


def held_writes(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[Event, Event]:
    """Hold the writing of the first file of a name. Return the events that it is reached, and may go on."""
    reached, may_go_on, real = Event(), Event(), durable.write_synced

    def held(path: Path, *chunks: Chunk) -> None:
        if path.name == name and not reached.is_set():
            reached.set()
            assert may_go_on.wait(SECONDS)
        real(path, *chunks)

    monkeypatch.setattr(durable, "write_synced", held)
    return reached, may_go_on


def kept(path: Path) -> dict[str, bytes]:
    saved, damaged = load_latest(path / "checkpoints")
    assert not damaged
    return contents(saved)


class Stop(BaseException):
    pass


def test_a_checkpoint_is_the_state_of_its_step_whatever_the_training_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not complete before all is written, however far the training is by then."""

    def stop(trainer: Trainer, step: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        saving_at(tmp_path / "at once", 4, stop).run(SignalHandler())
    reached, may_go_on = held_writes(monkeypatch, "weights.safetensors")
    seen: list[Any] = []

    def go_on(trainer: Trainer, step: int) -> None:
        assert reached.wait(SECONDS)
        seen.append(load_latest(trainer.folder.checkpoints))
        if step == 8:
            may_go_on.set()
            raise Stop

    # The evaluation of step 6 finds better weights, which would wait for the checkpoint.
    trainer = saving_at(tmp_path / "later", 4, go_on)
    trainer.valid = None
    with pytest.raises(Stop):
        trainer.run(SignalHandler())
    assert seen == [(None, [])] * 4
    first, second = kept(tmp_path / "at once"), kept(tmp_path / "later")
    for name in ("weights.safetensors", "optimizer.safetensors", "average.safetensors", "carry.safetensors"):
        assert second[name] == first[name], name


def test_a_resumed_run_ends_equal_though_logs_and_best_weights_went_on(tmp_path: Path) -> None:
    config = toy_config(training=CONFIG)
    whole = fingerprint(train(tmp_path / "whole", config))

    def stop(trainer: Trainer, step: int) -> None:
        if step == 8:
            raise Stop

    with pytest.raises(Stop):
        saving_at(tmp_path / "run", 4, stop).run(SignalHandler())
    again = train(tmp_path / "run", config)
    assert again.recorder.begun[0][0] == 4
    assert differences(fingerprint(again), whole) == []


def test_callbacks_hear_of_complete_checkpoints_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, may_go_on = held_writes(monkeypatch, "weights.safetensors")
    heard: list[list[int]] = []

    def go_on(trainer: ToyTrainer, step: int) -> None:
        assert reached.wait(SECONDS)
        heard.append([saved for saved, _ in trainer.recorder.saves])
        if step == 5:
            may_go_on.set()
            trainer.files.finish()

    trainer = saving_at(tmp_path / "run", 4, go_on)
    trainer.run(SignalHandler())
    assert heard == [[], [4], [4], [4]]
    assert [saved for saved, _ in trainer.recorder.saves] == [4, 9]
    assert all(path.is_dir() for _, path in trainer.recorder.saves)


@pytest.mark.parametrize("name", ["weights.safetensors", "manifest.json"])
def test_a_full_disk_ends_the_training_a_step_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    real = durable.write_synced

    def full(path: Path, *chunks: Chunk) -> None:
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, *chunks)

    monkeypatch.setattr(durable, "write_synced", full)

    def wait(trainer: Trainer, step: int) -> None:
        if thread := trainer.files._background._thread:
            thread.join()

    trainer = saving_at(tmp_path / "run", 4, wait)
    with pytest.raises(RunFailed, match=r"checkpoints/4: can't write: No space left on device"):
        trainer.run(SignalHandler())
    assert trainer.state.counters.step <= 6
    assert not [*(tmp_path / "run" / "checkpoints").iterdir()]


def test_an_error_that_ends_the_training_comes_before_one_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full while the training ends."""
    reached, may_go_on, real = Event(), Event(), durable.write_synced

    def full(path: Path, *chunks: Chunk) -> None:
        if path.name == "weights.safetensors":
            reached.set()
            assert may_go_on.wait(SECONDS)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, *chunks)

    def stop(trainer: Trainer, step: int) -> None:
        assert reached.wait(SECONDS)
        may_go_on.set()
        raise ZeroDivisionError

    monkeypatch.setattr(durable, "write_synced", full)
    with pytest.raises(ZeroDivisionError):
        saving_at(tmp_path / "run", 4, stop).run(SignalHandler())
    assert not [*(tmp_path / "run" / "checkpoints").iterdir()]


def test_a_second_signal_gives_up_half_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, may_go_on = held_writes(monkeypatch, "weights.safetensors")

    def strike(trainer: Trainer, step: int) -> None:
        assert reached.wait(SECONDS)
        signal.raise_signal(signal.SIGINT)
        Timer(0.3, may_go_on.set).start()  # while the training waits for the end of the writing
        signal.raise_signal(signal.SIGINT)

    trainer = saving_at(tmp_path / "run", 4, strike)
    with pytest.raises(Interrupted), SignalHandler() as signals:
        trainer.run(signals)
    assert not [*(tmp_path / "run" / "checkpoints").iterdir()]
