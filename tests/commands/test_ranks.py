"""`foveal train --ranks`: several processes end with the weights of one, also after one of them was
killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import safetensors.torch
import torch

from benchmarks import kill
from foveal.commands.ranks import KEPT_FLAGS, KEPT_OPTIONS, options_in
from tests.support.command_line import refuse
from tests.support.untrained_runs import SMALL_LSTM, write_plays

SMALL = (*SMALL_LSTM, "training.evaluate_every=20", "training.final_test=false", "--slots", "4")
DATA = "plays.txt"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_plays(DATA)
    return tmp_path


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "foveal", *arguments, "-q"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*arguments: str) -> None:
    process = start(*arguments)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err


def ending(run: str) -> Any:
    """Return everything of a finished run but the times."""
    return kill.ending(Path(run))


def train(run: str, *more: str, steps: int = 30) -> tuple[str, ...]:
    return ("train", DATA, *SMALL, "--budget", f"{steps}steps", "--run", run, *more)


def rank_of(process: int, rank: int) -> int:
    """Return the process of a rank, which a launcher has started."""
    for child in psutil.Process(process).children(recursive=True):
        if child.environ().get("RANK") == str(rank):
            return child.pid
    raise AssertionError(f"rank {rank} does not run")


def wait_for_step(run: str, step: int) -> None:
    log = Path(run, "metrics.jsonl")
    for _ in range(3000):
        if log.exists() and log.read_text().count('"kind": "step"') >= step:
            return
        time.sleep(0.05)
    raise AssertionError(f"{run} never came to step {step}")


def test_two_ranks_are_one_process() -> None:
    finish(*train("one"))
    finish(*train("two", "--ranks", "2"))
    assert ending("two") == ending("one")


def weights_of(run: str) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(Path(run, "model.safetensors"))


@pytest.mark.slow
def test_ranks_that_share_the_weights_and_a_process_that_goes_on_alone() -> None:
    """Up to rounding, the weights are those of a single process."""
    finish(*train("whole", "training.ema_decay=0.9"))
    finish(*train("shared", "training.ema_decay=0.9", "--ranks", "2", "--fsdp"))
    for steps, ranks in ((50, ("--ranks", "4", "--fsdp")), (60, ())):
        finish("resume", "shared", "--budget", f"{steps}steps", *ranks)
        finish("resume", "whole", "--budget", f"{steps}steps")
    whole, shared = weights_of("whole"), weights_of("shared")
    assert whole.keys() == shared.keys()
    for name, weight in whole.items():
        assert torch.allclose(shared[name], weight, atol=1e-4), name
    assert Path("shared", "samples.jsonl").read_text() == Path("whole", "samples.jsonl").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("--ranks", "4", "--pp", "2"), ("--ranks", "2", "--pp", "2", "--virtual-stages", "2")),
        (("--ranks", "4", "--pp", "2", "--tp", "2"), ("--ranks", "2")),
        (("--ranks", "4", "--tp", "2"), ("--ranks", "2", "--tp", "2")),
        (("--ranks", "4", "--fsdp", "--tp", "2"), ("--ranks", "2", "--pp", "2")),
    ],
)
def test_stages_and_other_ways_to_go_on(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    """Up to rounding, the weights are those of a single process; so are the samples. States of a text that
    goes on are stored whole."""
    streams = ("--model", "attention", *SMALL[2:-2], "model.layers=4", "model.attention.heads=2")
    if "--tp" not in first:
        streams = ("--model", "gru", *SMALL[2:-2], "model.layers=4", "task.batching=streams")
    finish("train", DATA, *streams, "--slots", "4", "--budget", "30steps", "--run", "whole")
    finish("train", DATA, *streams, *first, "--slots", "4", "--budget", "30steps", "--run", "cut")
    finish("resume", "cut", "--budget", "40steps", *second)
    finish("resume", "cut", "--budget", "50steps")
    for steps in (40, 50):
        finish("resume", "whole", "--budget", f"{steps}steps")
    whole, cut = weights_of("whole"), weights_of("cut")
    assert whole.keys() == cut.keys()
    for name, weight in whole.items():
        assert torch.allclose(cut[name], weight, atol=1e-4), name
    assert Path("cut", "samples.jsonl").read_text() == Path("whole", "samples.jsonl").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("placement", [("--fsdp",), ("--tp", "2"), ("--pp", "2")])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_of_shared_weights(placement: tuple[str, ...], rank: int) -> None:
    often = "training.checkpoint_seconds=0.2"
    settings = "model.layers=2", often
    process = start(*train("struck", *settings, "--ranks", "2", *placement, steps=4000))
    wait_for_step("struck", 40)
    os.kill(rank_of(process.pid, rank), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = err.splitlines()
    assert line.startswith(f"foveal: rank {rank} was ended by SIGKILL")
    assert line.endswith(f"go on with foveal resume struck --ranks 2 {' '.join(placement)}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fsdp",), "--fsdp: there is a single group of processes, and no other to share the weights with"),
        (("--ranks", "2", "--tp", "2", "--fsdp"), "--fsdp: there is a single group of processes"),
        (("--tp", "2"), "--tp 2: there is a single process: add --ranks N"),
        (("--pp", "2"), "--pp 2: there is a single process: add --ranks N"),
        (
            ("--ranks", "4", "--tp", "3"),
            "--tp 3: the 4 processes are divided by 1, 2, 4; choose one of these",
        ),
        (("--ranks", "4", "--tp", "0"), "--tp 0: the 4 processes are divided by 1, 2, 4"),
        (("--ranks", "4", "--tp", "2", "--pp", "4"), "--pp 4: the 4 processes make 2 groups, which are"),
        (("--ranks", "4", "--tp", "2", "--ep", "4"), "--ep 4: the 4 processes make 2 groups, which are"),
        (
            ("--ranks", "4", "--dp", "3", "--tp", "2"),
            "--dp 3: 4 processes are 2 groups of --tp 2 times --pp 1",
        ),
        (("--ranks", "4", "--pp", "2", "--ep", "2"), "--pp and --ep do not go together: choose one"),
        (("--ranks", "4", "--virtual-stages", "2"), "--virtual-stages 2: stages of a pipeline; expected"),
    ],
)
def test_processes_that_can_not_share_the_weights(options: tuple[str, ...], message: str) -> None:
    assert message in refuse("train", DATA, *SMALL, *options)
    assert not Path("runs").exists()


@pytest.mark.slow
def test_a_model_that_can_not_be_split_makes_no_run() -> None:
    arguments = ("--model", "attention", *SMALL[2:], "model.attention.heads=2", "--ranks", "4", "--tp", "4")
    process = start("train", DATA, *arguments, "--run", "run")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, Path("run").exists()) == (2, False)
    (line,) = err.splitlines()
    assert line == "foveal: --tp 4: stack.blocks.0.mixer: 2 heads can't be split among 4 ranks"


@pytest.mark.slow
def test_a_training_that_diverges_says_so_once() -> None:
    attention = ("--model", "attention", *SMALL[2:], "model.attention.heads=2", "optimizer.lr=1e30")
    process = start("train", DATA, *attention, "--ranks", "2", "--budget", "60steps", "--run", "run")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = [line for line in err.splitlines() if "skipped" not in line]
    assert line.startswith("foveal: 10 consecutive steps gave numbers that are not finite")


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_killed_rank_ends_all_and_another_number_goes_on(rank: int) -> None:
    often = "training.checkpoint_seconds=0.2"
    finish(*train("whole", often, steps=400))
    process = start(*train("struck", often, "--ranks", "4", steps=400))
    wait_for_step("struck", 40)
    os.kill(rank_of(process.pid, rank), signal.SIGKILL)
    since = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - since < 10
    assert process.returncode == 1
    stopped = f"foveal: rank {rank} was ended by SIGKILL, so all 4 ranks are stopped; go on with "
    assert err.splitlines()[-1] == f"{stopped}foveal resume struck --ranks 4"
    finish("resume", "struck", "--ranks", "2")
    assert ending("struck") == ending("whole")


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_full_disk_of_one_rank_ends_all(rank: int) -> None:
    placed = ("--ranks", "2", "--fsdp")
    settings = "training.checkpoint_seconds=0.2", "training.precision=float32"
    finish(*train("whole", *settings, *placed, steps=400))
    process = start(*train("full", *settings, *placed, steps=400))
    wait_for_step("full", 40)
    psutil.Process(rank_of(process.pid, rank)).rlimit(psutil.RLIMIT_FSIZE, (1000, 1000))
    since = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - since < 10
    assert process.returncode == 1
    (line,) = err.splitlines()
    assert f"rank {rank}: " in line or rank == 0
    assert "File too large" in line
    finish("resume", "full", *placed)
    assert ending("full") == ending("whole")


@pytest.mark.slow
def test_killed_ranks_start_again_by_themselves() -> None:
    often = "training.checkpoint_seconds=0.2"
    finish(*train("whole", often, steps=400))
    process = start(*train("again", often, "--ranks", "2", "--max-restarts", "1", steps=400))
    wait_for_step("again", 40)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    wait_for_step("again", 300)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err.splitlines() == ["rank 1 was ended by SIGKILL; again goes on (restart 1 of 1)"]
    assert ending("again") == ending("whole")


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_frozen_rank_ends_all(rank: int) -> None:
    process = start(*train("frozen", "--ranks", "2", steps=100_000))
    wait_for_step("frozen", 40)
    frozen = rank_of(process.pid, rank)
    os.kill(frozen, signal.SIGSTOP)
    since = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - since < 25
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith(
        f"foveal: rank {rank} gave no sign of life for 20 s, so all 2 ranks"
    )
    assert not psutil.pid_exists(frozen)


@pytest.mark.slow
def test_ranks_whose_launcher_is_killed_save_and_end() -> None:
    process = start(*train("left", "--ranks", "2", steps=100_000))
    wait_for_step("left", 40)
    ranks = [psutil.Process(rank_of(process.pid, rank)) for rank in range(2)]
    process.kill()
    _, alive = psutil.wait_procs(ranks, timeout=20)
    process.communicate()
    assert not alive
    assert [*Path("left/checkpoints").iterdir()]


@pytest.mark.slow
def test_a_stopped_job_that_goes_on_is_not_taken_for_frozen() -> None:
    """As Ctrl-Z and fg in a shell: all processes stop, and go on later."""
    finish(*train("whole", steps=400))
    process = start(*train("paused", "--ranks", "2", steps=400))
    wait_for_step("paused", 40)
    everyone = [process.pid, *(rank_of(process.pid, rank) for rank in range(2))]
    for each in everyone:
        os.kill(each, signal.SIGSTOP)
    time.sleep(25)
    for each in everyone:
        os.kill(each, signal.SIGCONT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert ending("paused") == ending("whole")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_once_and_is_said_once(number: signal.Signals, code: int) -> None:
    finish(*train("whole", steps=400))
    process = start(*train("stopped", "--ranks", "2", steps=400))
    wait_for_step("stopped", 40)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert err.count("everything is saved; go on with: foveal resume stopped") == 1
    assert len(err.splitlines()) == 1, err
    finish("resume", "stopped")
    assert ending("stopped") == ending("whole")


def test_a_number_that_does_not_divide_is_refused() -> None:
    assert "--ranks 0: expected a number from 1 on" in refuse("train", DATA, *SMALL, "--ranks", "0")
    negative = ("--ranks", "2", "--max-restarts=-1")
    assert "--max-restarts -1: expected a number from 0 on" in refuse("train", DATA, *SMALL, *negative)
    assert "no ranks to start again" in refuse("train", DATA, *SMALL, "--max-restarts", "1")
    process = start(*train("three", "--ranks", "3"))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    line = "foveal: --ranks 3: the 4 slots of a batch are shared by 1, 2 or 4 ranks; choose one of these"
    assert err.strip() == line
    assert not Path("three").exists()


@pytest.mark.slow
def test_a_single_rank_is_a_process_of_its_own() -> None:
    finish(*train("one"))
    finish(*train("alone", "--ranks", "1"))
    assert ending("alone") == ending("one")


@pytest.mark.slow
def test_a_frozen_launcher_ends_its_ranks() -> None:
    """The launcher holds the store of their signs of life."""
    process = start(*train("frozen", "--ranks", "2", steps=100_000))
    wait_for_step("frozen", 40)
    ranks = [psutil.Process(rank_of(process.pid, rank)) for rank in range(2)]
    process.send_signal(signal.SIGSTOP)
    _, alive = psutil.wait_procs(ranks, timeout=40)
    running = [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
    process.kill()
    process.communicate()
    assert not running


def test_a_run_goes_on_with_the_options_of_its_command() -> None:
    command = ["train", "a.txt", "--ranks", "2", "-q", "--device", "cpu", "--log=csv", "--run", "r", "--json"]
    assert options_in(command, KEPT_FLAGS, KEPT_OPTIONS) == ["-q", "--device", "cpu", "--log=csv", "--json"]
