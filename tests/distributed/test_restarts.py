"""A job that is started again finds its run, and no other job does."""

import os
from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.distributed.restarts import ATTEMPT_FILE, note_for_restart, run_before_restart
from foveal.distributed.world import ONE_PROCESS, World


class TwoMachines(World):
    """The world of a machine, beside another that notes a run of its own."""

    def exchange(self, message: Any) -> list[Any]:
        return [message, "/noted/there"]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ATTEMPT_FILE, str(tmp_path / "job" / "attempt_0" / "0" / "error.json"))
    monkeypatch.setenv("LOCAL_RANK", "0")
    (tmp_path / "job").mkdir()
    return tmp_path


def test_the_next_attempt_of_a_job_finds_its_run(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_before_restart(ONE_PROCESS) == ""
    note_for_restart("/runs/a")
    monkeypatch.setenv(ATTEMPT_FILE, str(job / "job" / "attempt_1" / "3" / "error.json"))
    assert run_before_restart(ONE_PROCESS) == "/runs/a"
    monkeypatch.setenv(ATTEMPT_FILE, str(job / "other" / "attempt_0" / "0" / "error.json"))
    assert run_before_restart(ONE_PROCESS) == ""


def test_a_removed_run_is_forgotten_and_a_new_machine_learns_of_one(job: Path) -> None:
    note_for_restart("/runs/a")
    note_for_restart("")
    assert run_before_restart(ONE_PROCESS) == ""
    assert run_before_restart(TwoMachines()) == "/noted/there"


def test_without_torchrun_or_its_folder_nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ATTEMPT_FILE, raising=False)
    note_for_restart("/runs/a")
    assert run_before_restart(ONE_PROCESS) == ""
    monkeypatch.setenv(ATTEMPT_FILE, "")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    with pytest.raises(UserError, match=f"leave out --log-dir {os.devnull}; go on with torchrun"):
        run_before_restart(ONE_PROCESS)
