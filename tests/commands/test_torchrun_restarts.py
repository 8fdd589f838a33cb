"""torchrun runs the same command again after a failure: the run that it has made goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.kill import ending
from tests.support.command_line import TINY_MODEL, refuse, train_run
from tests.support.started_ranks import run_by_hand
from tests.support.untrained_runs import write_plays

pytestmark = pytest.mark.slow

DATA = "plays.txt"
SMALL = (
    *("--model", "lstm", *TINY_MODEL, "training.final_test=false", "--slots", "2"),
    "training.checkpoint_seconds=0.2",
)
RESTARTED_RANK = """
import os
from pathlib import Path
Path("job").mkdir(exist_ok=True)
os.environ["TORCHELASTIC_ERROR_FILE"] = str(Path("job/attempt_0/0/error.json").absolute())
os.environ["LOCAL_RANK"] = "0"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_plays(DATA)
    return tmp_path


def rank_with_checkpoint(torchrun: int, rank: int) -> psutil.Process:
    """Return a rank, once the only run has a checkpoint of the middle of its training."""
    for _ in range(3000):
        if any(int(each.name) >= 40 for each in Path("runs").glob("*/checkpoints/[0-9]*")):
            break
        time.sleep(0.05)
    children = psutil.Process(torchrun).children(recursive=True)
    return next(each for each in children if each.environ().get("RANK") == str(rank))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_of_torchrun_goes_on_with_the_same_run(rank: int) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    train = ["foveal", "train", DATA, *SMALL, "--budget", "400steps"]
    subprocess.run([sys.executable, "-m", *train, "--run", "whole"], env=environment, check=True)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1"]
    process = subprocess.Popen(
        [*torchrun, "-m", "--", *train], env=environment, stderr=subprocess.PIPE, text=True
    )
    rank_with_checkpoint(process.pid, rank).send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    (run,) = Path("runs").iterdir()
    assert f"torchrun has started the ranks again: {run.absolute()} goes on" in err
    assert ending(run) == ending(Path("whole"))


def test_a_budget_is_added_once() -> None:
    train_run(DATA, *SMALL, run="run", steps=3)
    more = ("resume", "run", "--budget", "+3steps")
    assert [each.code for each in run_by_hand(more, RESTARTED_RANK, RESTARTED_RANK)] == [0, 0]
    run_by_hand(more, RESTARTED_RANK, RESTARTED_RANK)
    assert "finished after 6 steps" in refuse("resume", "run")
