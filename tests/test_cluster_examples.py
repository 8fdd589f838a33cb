"""The scripts for several machines: two launchers on this machine stand for two machines, and small programs
for those of a cluster."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from torch.distributed.run import parse_args

from benchmarks.kill import ending
from foveal.cli import APP
from tests.support.started_ranks import free_port
from tests.support.untrained_runs import write_plays

CLUSTER = Path(__file__).parents[1] / "examples" / "cluster"
SMALL = (
    *("--model", "lstm", "model.width=16", "model.layers=1", "data.context_length=16"),
    *("data.batch_tokens=64", "training.final_test=false", "--slots", "2", "--budget", "30steps", "-q"),
)


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


def write_program(name: str, script: str) -> None:
    """Write a program that the scripts find in place of the one of the cluster."""
    Path("bin").mkdir(exist_ok=True)
    Path("bin", name).write_text(f"#!/usr/bin/env bash\n{script}\n")
    Path("bin", name).chmod(0o755)


def run_script(*command: str, **variables: str) -> int:
    path = f"{Path('bin').absolute()}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(command, env=os.environ | variables | {"PATH": path}).returncode


def check_torchrun(arguments: Sequence[str]) -> Any:
    """Check that torchrun and foveal take the arguments that a script gives them, and return torchrun's."""
    options = parse_args(arguments)
    script = options.training_script_args
    assert (options.module, options.training_script) == (True, "foveal")
    APP.parse_args(script, exit_on_error=False, print_error=False)
    return options


@pytest.mark.parametrize(
    ("work", "code", "restarts", "goes_on"),
    [
        ("mkdir -p $RUN/checkpoints/0000000400", 1, 0, True),  # its time is over
        ("mkdir -p $RUN/checkpoints/0000000300", 137, 0, True),
        ("mkdir -p $RUN/checkpoints/0000000300", 1, 0, False),  # diverged
        ("mkdir -p $RUN/checkpoints/.0000000400", 1, 0, False),
        ("rm -r $RUN", 1, 0, False),  # refused
        ("mkdir -p $RUN/checkpoints/0000000400", 1, 20, False),
        ("mkdir -p $RUN/checkpoints/0000000400", 0, 0, False),
    ],
)
def test_a_slurm_job_goes_on_if_that_helps(
    work: str,
    code: int,
    restarts: int,
    goes_on: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs/job-7/checkpoints/0000000300").mkdir(parents=True)
    write_program("srun", f'printf "%s\\n" "$@" > arguments; RUN=runs/job-7; {work}; exit {code}')
    write_program("scontrol", 'if [ "$1" = show ]; then printf "a\nb\n"; else echo "$@" >> queue; fi')
    variables = {"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_CPUS_PER_TASK": "4"}
    script = ("bash", str(CLUSTER / "slurm.sbatch"), "plays.txt")
    ended = run_script(*script, **variables, SLURM_RESTART_COUNT=str(restarts), SLURM_JOB_NODELIST="[a-b]")
    assert ended == (1 if code else 0)
    assert Path("queue").exists() == goes_on
    arguments = Path("arguments").read_text().splitlines()
    options = check_torchrun(arguments[arguments.index("torchrun") + 1 :])
    assert (options.nnodes, options.rdzv_endpoint) == ("2", "a:29400")
    assert options.training_script_args == ["resume", "runs/job-7"]


def test_the_job_of_kubernetes_starts_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    service, job = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
    name, pod = job["metadata"]["name"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    write_program("torchrun", 'printf "%s\\n" "$@" > arguments')
    for command in ("train", "resume"):
        assert run_script(*container["command"]) == 0
        options = check_torchrun(Path("arguments").read_text().splitlines())
        assert options.training_script_args[0] == command
        assert int(options.nnodes) == job["spec"]["completions"] == job["spec"]["parallelism"]
        assert int(options.nproc_per_node) == container["resources"]["limits"]["nvidia.com/gpu"]
        assert options.rdzv_endpoint == f"{name}-0.{pod['subdomain']}:29400"
        run = "run" if command == "resume" else options.training_script_args[-1]
        Path(run).mkdir(exist_ok=True)
