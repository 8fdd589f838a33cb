"""`--ranks` of evaluate, predict and generate: one answer for each row in order, one line when it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.command_line import refuse, succeed
from tests.support.small_texts import SMALL, write_labels

ROWS = 7
MANY = 200_000
TIMES = {"run", "seconds"}
"""Facts of a training that differ from run to run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A folder with a run that labels texts, and texts for it."""
    folder = tmp_path_factory.mktemp("use")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(cache))
        patch.chdir(folder)
        write_labels()
        few = ("--budget", "3steps", "--run", "run", "data.batch_tokens=32")
        succeed("train", "labels.csv", *SMALL, *few)
        texts = ["the red cat", "a dog", "the cat and the dog"]
        for name, count in (("few.csv", ROWS), ("many.csv", MANY)):
            rows = "".join(f"{number},{texts[number % 3]}\n" for number in range(count))
            Path(name).write_text(f"id,text\n{rows}")
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "foveal", *arguments, "-q"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(*arguments: str) -> str:
    process = start(*arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert not err
    return out


def rank_of(process: int, rank: int) -> int:
    """Return the process of a rank, once it predicts."""
    for _ in range(1200):
        for child in psutil.Process(process).children(recursive=True):
            if child.environ().get("RANK") == str(rank) and child.cpu_times().user > 5:
                return child.pid
        time.sleep(0.05)
    raise AssertionError(f"rank {rank} does not run")


def test_scores_are_printed_once_and_are_those_of_one_process() -> None:
    alone = output("evaluate", "run", "labels.csv", "--json")
    assert output("evaluate", "run", "labels.csv", "--json", "--ranks", "2") == alone


@pytest.mark.slow
def test_the_test_after_a_training_is_that_of_one_process() -> None:
    shared = ("--budget", "3steps", "--slots", "2", "data.batch_tokens=32", "--json")
    results = list[dict[str, Any]]()
    for run, ranks in (("one", "1"), ("two", "2")):
        out = output("train", "labels.csv", *SMALL, *shared, "--run", run, "--ranks", ranks)
        results.append({name: value for name, value in json.loads(out).items() if name not in TIMES})
    assert results[0] == results[1]
    assert results[0]["split"] == "test"


@pytest.mark.slow
def test_more_ranks_than_batches_answer_each_row_once() -> None:
    alone = output("predict", "run", "few.csv")
    assert len(alone.splitlines()) == ROWS + 1
    assert output("predict", "run", "few.csv", "--ranks", "3") == alone
    output("predict", "run", "few.csv", "--ranks", "2", "--out", "few.jsonl")
    output("predict", "run", "few.csv", "--out", "alone.jsonl")
    assert Path("few.jsonl").read_text() == Path("alone.jsonl").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_is_named_in_one_line(rank: int) -> None:
    process = start("predict", "run", "many.csv", "--ranks", "2", "--out", "many.csv.jsonl")
    os.kill(rank_of(process.pid, rank), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    line = f"foveal: rank {rank} was ended by SIGKILL, so all 2 ranks are stopped; start the command again"
    assert err.splitlines() == [line]
    assert not [*Path().glob("many.csv.*")]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["launcher", "rank"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_all_with_one_line(which: str, number: signal.Signals, code: int) -> None:
    process = start("predict", "run", "many.csv", "--ranks", "2", "--out", "many.csv.jsonl")
    rank = rank_of(process.pid, 1)
    os.kill(process.pid if which == "launcher" else rank, number)
    _, err = process.communicate(timeout=60)
    assert err.splitlines() == [f"foveal: stopped by {number.name}; nothing was saved"]
    assert process.returncode == code


def test_an_error_of_all_ranks_is_one_line() -> None:
    process = start("predict", "run", "missing.csv", "--ranks", "2")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.splitlines() == [
        "foveal: missing.csv: no such file or folder; a text itself is given by --text missing.csv"
    ]


def test_lines_are_answered_by_one_process() -> None:
    process = succeed("predict", "run", "--text", "the red cat", "--ranks", "2")
    assert "--ranks 2: lines and questions are answered one by one, by one process" in process.err
    assert len(process.out.splitlines()) == 2
    assert "--ranks 0: expected a number from 1 on" in refuse("evaluate", "run", "--ranks", "0")


@pytest.mark.slow
def test_the_start_is_told_once() -> None:
    """The launcher says that the command starts, and its ranks do not."""
    command = [sys.executable, "-m", "foveal", "evaluate", "run", "labels.csv", "--ranks", "2"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert told.splitlines().count("foveal evaluate ...") == 1
