"""SIGINT and SIGTERM in every phase: save, say how to go on, exit 130 or 143; the end is bit-equal."""

import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks import kill
from foveal.generation import text_stream
from tests.support.command_line import run_command, succeed
from tests.support.interrupted_command import INTERRUPT_POINTS, TRAIN_COMMAND, act_at


@pytest.fixture(autouse=True)
def own_cache(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own: the data is prepared anew."""
    monkeypatch.setenv("FOVEAL_CACHE", str(kill.own_cache(here / "cache")))


def wait_for_checkpoint(run: Path) -> None:
    for _ in range(600):
        if any(not path.name.startswith(".") for path in (run / "checkpoints").iterdir()):
            return
        time.sleep(0.05)
    raise AssertionError(f"{run} has no checkpoint")


@pytest.mark.parametrize("place", INTERRUPT_POINTS)
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_every_phase(whole: dict[str, Any], number: signal.Signals, place: str) -> None:
    handler = signal.getsignal(number)
    with act_at(place, lambda: os.kill(os.getpid(), number)):
        told = run_command(*TRAIN_COMMAND)
    assert signal.getsignal(number) == handler
    assert told.code == 128 + number
    assert told.out == ""
    if place in ("data preparation", "dry run", "run made"):
        assert told.last == f"foveal: stopped by {number.name}; nothing was saved"
    else:
        assert told.last.startswith(f"foveal: stopped by {number.name} at step ")
        assert told.last.endswith("; everything is saved; go on with: foveal resume run")
    if place in ("data preparation", "dry run"):
        assert not Path("run").exists()
        assert not list(Path().rglob("*.part"))
        succeed(*TRAIN_COMMAND)
    else:
        succeed("resume", "run")
    assert kill.ending(Path("run")) == whole


@pytest.mark.parametrize(
    ("place", "saved"),
    [("sample", "nothing is saved yet"), ("after a sample", "its last checkpoint stays")],
)
def test_the_second_signal_ends_at_once(whole: dict[str, Any], place: str, saved: str) -> None:
    def strike() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def strike_twice() -> None:
        if saved == "its last checkpoint stays":
            wait_for_checkpoint(Path("run"))  # one that is still being written would be given up
        strike()
        strike()

    with act_at(place, strike_twice):
        told = run_command(*TRAIN_COMMAND)
    assert told.code == 130
    assert told.last.endswith(f"; {saved}; go on with: foveal resume run")
    succeed("resume", "run")
    assert kill.ending(Path("run")) == whole


def test_while_text_is_written(finished: Path) -> None:
    def struck(*_: object, **__: object) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the signal is raised at once")

    with patch.object(text_stream, "generate", struck):
        told = run_command("generate", finished)
    assert (told.code, told.last) == (130, "foveal: stopped by SIGINT; nothing was saved")
