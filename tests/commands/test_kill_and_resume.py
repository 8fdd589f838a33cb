"""SIGKILL at any moment: resumed, a run ends bit-equal to one that was never killed."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import kill
from tests.support.interrupted_command import INTERRUPT_POINTS, TRAIN_COMMAND, kill_itself_at
from tests.support.killed_runs import run_forked


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The ending of the run that was never killed."""
    folder = kill.new_folder(tmp_path_factory.mktemp("whole"), "whole")
    assert run_forked(folder, [*TRAIN_COMMAND]) == 0
    return kill.ending(folder / "run")


@pytest.mark.slow
@pytest.mark.parametrize(("mixer", "kills"), [("rnn", 3), ("lstm", 3), ("gru", 2), ("attention", 2)])
def test_at_random_moments(tmp_path: Path, mixer: str, kills: int) -> None:
    done, endings, equal = kill.kill(tmp_path, mixer, 60, kills, seed=1)
    assert done >= kills
    assert equal == endings


@pytest.mark.parametrize("place", INTERRUPT_POINTS)
def test_at_every_place(tmp_path: Path, whole: dict[str, Any], place: str) -> None:
    folder = kill.new_folder(tmp_path, "struck")
    assert run_forked(folder, [place, *TRAIN_COMMAND], kill_itself_at) == -signal.SIGKILL
    before = place in ("data preparation", "dry run")
    assert (folder / "run").exists() == (not before)
    assert run_forked(folder, [*TRAIN_COMMAND] if before else ["resume", "run"]) == 0
    assert kill.ending(folder / "run") == whole


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_real_process(here: Path, whole: dict[str, Any], foveal: list[str], number: signal.Signals) -> None:
    """The whole command, on its own, from a shell's point of view."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*foveal, *TRAIN_COMMAND], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        log = here / "run" / "metrics.jsonl"
        while not (log.exists() and log.stat().st_size) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(number)
        _, said = process.communicate()
    assert "Traceback" not in said
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        assert said.splitlines()[-1].startswith(f"foveal: stopped by {number.name} at step ")
        assert said.endswith("; everything is saved; go on with: foveal resume run\n")
    assert run_forked(here, ["resume", "run"]) == 0
    assert kill.ending(here / "run") == whole


def test_while_modules_are_imported(foveal: list[str]) -> None:
    """numpy and torch swallow what is raised in them, so the signal waits for their end."""
    process = subprocess.Popen([*foveal, *TRAIN_COMMAND], stderr=subprocess.PIPE, text=True)
    mapped = Path(f"/proc/{process.pid}/maps")
    while "numpy" not in mapped.read_text():
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert said == "foveal train ...\nfoveal: stopped by SIGINT; nothing was saved\n"
