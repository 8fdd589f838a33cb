"""Ranks that can't train together: one line says why, and nothing is written."""

from pathlib import Path

import pytest

from foveal.distributed.world import LOST_RANK_CODE
from tests.support.command_line import TINY_MODEL, train_run
from tests.support.started_ranks import run_by_hand
from tests.support.untrained_runs import write_plays

DATA = "plays.txt"
SMALL = ("--model", "lstm", *TINY_MODEL, "training.final_test=false", "--slots", "2")
OTHER_FOVEAL = "from foveal.api.training import follow; follow.__version__ = '0.0.7'"
OTHER_TORCH = "import torch; torch.__version__ = '1.2.3'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_plays(DATA)
    return tmp_path


def refused_by_second(arguments: tuple[str, ...], before: str) -> str:
    """Return the only line of two ranks, of which the second refuses to train."""
    first, second = run_by_hand(arguments, "", before)
    assert (first.code, first.err) == (LOST_RANK_CODE, "")
    assert second.code == 2
    (line,) = second.err.splitlines()
    return line


def test_a_rank_with_another_version_of_foveal_makes_no_run() -> None:
    line = refused_by_second(("train", DATA, *SMALL, "--budget", "3steps"), OTHER_FOVEAL)
    assert line.startswith("foveal: rank 1: this process has Foveal 0.0.7 with torch ")
    assert line.endswith(": install the same on all machines")
    assert not Path("runs").exists()


@pytest.mark.slow
def test_a_rank_with_another_version_of_torch_extends_no_budget() -> None:
    train_run(DATA, *SMALL, run="run", steps=3)
    before = Path("run/plan.json").read_bytes()
    line = refused_by_second(("resume", "run", "--budget", "+3steps"), OTHER_TORCH)
    assert " with torch 1.2.3, and rank 0 has Foveal " in line
    assert Path("run/plan.json").read_bytes() == before
