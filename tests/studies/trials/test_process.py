"""A training of a study in a process of its own: to its end, stopped, failed, killed, and gone on with."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from foveal.core.signals import Interrupted, SignalHandler
from foveal.studies.trials.process import train_in_process
from tests.support.command_line import TINY_MODEL

TEXT = "A man rides a horse. A dog runs.\n" * 100
SETTINGS = (*TINY_MODEL, "training.final_test=false", "training.statistics=false")


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "notes.txt").write_text(TEXT)
    return [str(tmp_path / "notes.txt"), *SETTINGS, "--model", "lstm", "--budget", "30steps"]


def train(run: Path, arguments: list[str], watch=lambda record: False) -> Any:
    with SignalHandler() as signals:
        return train_in_process(run, arguments, signals, watch)


def test_its_records_are_seen_and_a_finished_run_is_not_trained_again(tmp_path, arguments):
    seen = list[dict[str, Any]]()

    def watch(record: dict[str, Any]) -> bool:
        seen.append(record)
        return False

    assert train(tmp_path / "run", arguments, watch).state == "finished"
    assert [record["step"] for record in seen if record["kind"] == "evaluation"] == [10, 20, 30]
    seen.clear()
    assert train(tmp_path / "run", ["no such file"], watch).state == "finished"
    assert [record["step"] for record in seen if record["kind"] == "evaluation"] == [10, 20, 30]


@pytest.mark.slow
def test_a_training_that_is_stopped_goes_on_where_it_was(tmp_path, arguments):
    arguments[-1] = "4000steps"
    stopped = train(tmp_path / "run", arguments, lambda record: record["step"] >= 20)
    assert stopped.state == "stopped"
    seen = list[int]()

    def watch(record: dict[str, Any]) -> bool:
        seen.append(record["step"])
        return record["step"] > max(seen[0], 20) + 20

    assert train(tmp_path / "run", arguments, watch).state == "stopped"
    assert seen[0] == 1  # of the log before
    assert 20 in seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "words"),
    [("optimizer.lr=1e38", "not finite"), ("model.width=none", "model.width")],
)
def test_a_training_that_fails_says_why(tmp_path, arguments, setting, words):
    end = train(tmp_path / "run", [*arguments, setting])
    assert end.state == "failed"
    assert words in end.error


@pytest.mark.slow
def test_a_killed_training_has_failed(tmp_path, arguments):
    def watch(record: dict[str, Any]) -> bool:
        os.kill(_child(), signal.SIGKILL)
        return False

    arguments[-1] = "4000steps"
    assert train(tmp_path / "run", arguments, watch).error == "its process was ended by SIGKILL"


@pytest.mark.slow
def test_a_signal_is_passed_on_and_the_training_saves(tmp_path, arguments):
    def watch(record: dict[str, Any]) -> bool:
        if record["step"] == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return False

    arguments[-1] = "4000steps"
    with pytest.raises(Interrupted):
        train(tmp_path / "run", arguments, watch)
    assert [*(tmp_path / "run" / "checkpoints").iterdir()]


def _child() -> int:
    """Return the process that this one has started."""
    tasks = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not tasks.exists():
        pytest.skip("this system does not list the children of a process")
    return int(tasks.read_text().split()[-1])
