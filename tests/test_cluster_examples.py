"""The scripts for several machines: two launchers on this machine stand for two machines."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kill import ending
from tests.support.untrained_runs import write_plays

CLUSTER = Path(__file__).parents[1] / "examples" / "cluster"
SMALL = (
    *("--model", "lstm", "model.width=16", "model.layers=1", "data.context_length=16"),
    *("data.batch_tokens=64", "training.final_test=false", "--slots", "2", "--budget", "30steps", "-q"),
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.slow
def test_two_machines_train_as_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_plays()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PATH": path, "PORT": str(free_port())}
    alone = [sys.executable, "-m", "foveal", "train", "plays.txt", *SMALL, "--run", "alone"]
    assert subprocess.run(alone, env=environment).returncode == 0
    script = ["bash", str(CLUSTER / "two_machines.sh"), "127.0.0.1", "plays.txt", *SMALL, "--run", "both"]
    machines = [subprocess.Popen(script, env=environment) for _ in range(2)]
    assert [machine.wait(180) for machine in machines] == [0, 0]
    assert ending(Path("both")) == ending(Path("alone"))


@pytest.mark.parametrize("script", ["two_machines.sh", "slurm.sbatch"])
def test_scripts_can_be_parsed(script: str) -> None:
    assert subprocess.run(["bash", "-n", str(CLUSTER / script)]).returncode == 0
