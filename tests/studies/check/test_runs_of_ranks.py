"""`foveal check` of runs that several processes trained: bit for bit, or up to rounding where they share the
model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import TINY_MODEL, run_command
from tests.support.untrained_runs import write_plays

RESUMED = "a training that is stopped and resumed ends as one that is not"
SETTINGS = (*TINY_MODEL, "model.attention.heads=2", "training.precision=float32", "model.dropout=0.1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_plays("plays.txt")
    return tmp_path


def run_here(*arguments: str) -> None:
    """Run a command in processes of its own, of one thread each."""
    command = [sys.executable, "-m", "foveal", *arguments, "-q"]
    subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)


def train(*ranks: str) -> None:
    model = ("--model", "attention", *SETTINGS)
    run_here("train", "plays.txt", *model, "--budget", "6steps", "--run", "run", *ranks)


def replays() -> dict[str, str]:
    """Return the verdicts of the laws of the training."""
    laws = json.loads(run_command("check", "run", "--steps", "6", "--json").out)["laws"]
    return {law["law"]: law["verdict"] for law in laws if law["part"] == "training"}


@pytest.mark.slow
def test_ranks_alone_are_compared_bit_for_bit() -> None:
    train("--ranks", "2")
    run_here("resume", "run", "--budget", "8steps")
    assert replays() == {
        "the first 6 steps are those of the log": "holds",
        RESUMED: "holds",
        "2 steps from checkpoint 6 give the hashes of checkpoint 8": "holds",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "layout"),
    [
        (("--ranks", "2", "--tp", "2"), "--tp 2"),
        (("--ranks", "2", "--fsdp"), "--fsdp"),
    ],
)
def test_processes_that_share_the_model_are_compared_up_to_rounding(
    ranks: tuple[str, ...], layout: str
) -> None:
    train(*ranks)
    first = f"the first 6 steps are those of the log up to rounding ({layout})"
    assert replays()[first] == "holds"
    run_here("resume", "run", "--budget", "8steps", *ranks)
    assert replays() == {
        first: "holds",
        RESUMED: "holds",
        f"2 steps from checkpoint 6 are those of the log up to rounding ({layout})": "holds",
    }


@pytest.mark.slow
def test_a_run_that_goes_on_in_one_process_is_compared_bit_for_bit_from_there() -> None:
    train("--ranks", "2", "--tp", "2")
    run_here("resume", "run", "--budget", "8steps")
    laws = replays()
    assert laws["the first 6 steps are those of the log up to rounding (--tp 2)"] == "holds"
    assert laws["2 steps from checkpoint 6 give the hashes of checkpoint 8"] == "holds"


@pytest.mark.slow
def test_other_numbers_than_those_of_rounding_are_named() -> None:
    train("--ranks", "2", "--tp", "2")
    log = Path("run/metrics.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    records[1]["loss"] *= 1.01
    log.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert replays()["the first 6 steps are those of the log up to rounding (--tp 2)"] == "BROKEN"


@pytest.mark.slow
def test_a_pipeline_draws_other_noise() -> None:
    train("--ranks", "2", "--pp", "2", "model.layers=2")
    law = run_command("check", "run", "--steps", "6")
    assert "not applicable: they were trained with --pp 2, whose stages draw other noise" in law.out
    assert law.code == 0
