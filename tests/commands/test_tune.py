"""`foveal tune`: what is refused before anything is written, and whole studies with a planted rate."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import foveal
from tests.support.command_line import TINY_MODEL, run_command, succeed
from tests.support.labeled_images import PATCHES, SMALL, write_images
from tests.support.plugin_files import write_cell

TEXT = "a man rides the horse.\nthe dog sees a man.\na cat likes the horse.\nthe horse sees a dog.\n" * 60
TINY = ("--model", "lstm", *TINY_MODEL[:-1], "training.budget=60steps")
PLANTED = ("optimizer.lr=2", "model.dropout=0")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "notes.txt").write_text(TEXT)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--budget", "5epochs"), "the budget of a study is a time"),
        (("--budget", "20ms"), "budget '20ms'"),
        ((*TINY, "--search", "optimizer.lt"), "did you mean 'optimizer.lr'?"),
        ((*TINY, "data.valid_fraction=0"), "no held-out rows to choose settings by"),
        ((*TINY, "--budget", "1s"), "--budget 1 s is too little: a trial of 20 steps takes"),
        ((*TINY, "--budget", "60m", "--run", "notes.txt"), "notes.txt"),
        (("--out", "report.exe"), "expected a name that ends in .png"),
        (("--model", "lstm", "training.budget=0steps"), "the weights of lstm are computed, not trained"),
    ],
)
def test_what_can_not_be_tuned_is_refused_and_nothing_is_written(folder, arguments, words):
    before = {path.name for path in folder.iterdir()}
    result = run_command("tune", "notes.txt", *arguments)
    assert result.code == 2
    assert words in result.last
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [f"film {number},good" for number in range(40)],
            "have the label 'good': at least two classes are needed",
        ),
        (
            ["a good film,good", "a bad film,bad"],
            "no rows for the test set; give more rows, or set data.test_fraction=0",
        ),
        (["a good film,good"], "a single row that can be used; give more"),
    ],
)
def test_rows_that_are_too_few_or_alike_are_refused(folder, rows, words):
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows, ""]))
    result = run_command("tune", "rows.csv", "--model", "text-classification", "--run", "study")
    assert result.code == 2
    assert words in result.last
    assert not (folder / "study").exists()


@pytest.mark.slow
def test_a_plugin_of_the_user_is_tuned(folder, own_registries):
    write_cell(folder / "mine.py")
    cell = "--plugin", "mine.py", "model.mixers=tanh-cell"
    tuned = succeed("tune", "notes.txt", *cell, *TINY, *PLANTED, "--budget", "3m", "--json", "--run", "study")
    told = json.loads(tuned.out)
    assert "optimizer.lr=2" in told["verdict"]
    assert not [trial["error"] for trial in told["trials"] if trial["error"]]
    for trial in told["trials"]:
        run = Path("study", f"{trial['phase']}-{trial['number']}")
        assert (run / "plugins/mine.py").read_text() == (folder / "mine.py").read_text()
    trained = run_command(*told["command"][1:], "--run", "trained")
    assert trained.code == 0, trained.err


@pytest.mark.slow
def test_images_are_tuned(folder):
    small, planted = (*PATCHES, *SMALL, "training.budget=60steps"), "optimizer.lr=1e-5"
    tuned = succeed("tune", write_images(), *small, planted, "--budget", "2m", "--json", "--run", "study")
    told = json.loads(tuned.out)
    assert "optimizer.lr=1e-05: " in told["verdict"]
    assert "times too low" in told["verdict"]
    assert float(told["recommended"]["optimizer.lr"]) > 1e-4
    assert told["held_out_loss"] < told["trials"][0]["loss"]
    assert Path("study/report.html").stat().st_size > 1000


@pytest.mark.slow
def test_a_planted_rate_is_named_and_the_command_trains(folder):
    result = run_command("tune", "notes.txt", *TINY, *PLANTED, "--budget", "90s", "--json", "--run", "study")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert "optimizer.lr=2" in told["verdict"]
    assert "too high" in told["verdict"]
    assert float(told["recommended"]["optimizer.lr"]) < 0.5
    assert {"as given", "drawn at random"} <= {trial["reason"] for trial in told["trials"]}
    assert told["trials"][0]["loss"] > told["held_out_loss"]
    assert {"report.html", "report.json", "report.png"} <= {path.name for path in Path("study").iterdir()}
    again = run_command("tune", "notes.txt", *TINY, *PLANTED, "--budget", "90s", "--json", "--run", "study")
    assert json.loads(again.out) == told
    other = run_command("tune", "notes.txt", *TINY, *PLANTED, "--budget", "91s", "--run", "study")
    assert "created with other settings (budget)" in other.last
    command = told["command"]
    assert command[:3] == ["foveal", "train", "notes.txt"]
    trained = run_command(*command[1:], "--run", "trained")
    assert trained.code == 0, trained.err


@pytest.mark.slow
def test_a_killed_study_goes_on(folder):
    command = ["tune", "notes.txt", *TINY, *PLANTED, "--budget", "90s", "--run", "study"]
    process = subprocess.Popen([sys.executable, "-m", "foveal", *command], stderr=subprocess.DEVNULL)
    while not (Path("study") / "coarse-1").exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()
    before = (Path("study") / "checks.json").read_bytes()
    result = run_command(*command, "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert (Path("study") / "checks.json").read_bytes() == before
    assert all(trial["state"] != "begun" for trial in told["trials"])
    assert len({*(trial["phase"] + str(trial["number"]) for trial in told["trials"])}) == len(told["trials"])


@pytest.mark.slow
def test_a_signal_keeps_the_trials_and_says_how_to_go_on(folder):
    command = ["tune", "notes.txt", *TINY, *PLANTED, "--budget", "90s", "--run", "study"]
    process = subprocess.Popen(
        [sys.executable, "-m", "foveal", *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (Path("study") / "coarse-1").exists():
        assert process.poll() is None
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: foveal tune notes.txt" in errors.splitlines()[-1]
    assert errors.splitlines()[-1].endswith("--run study")


@pytest.mark.slow
def test_values_in_memory_are_tuned_from_python():
    rows = [{"text": f"{'good' if n % 2 else 'bad'} film number {n}", "label": n % 2} for n in range(300)]
    settings = {"model.encoder.width": 16, "model.encoder.layers": 1, "training.budget": "60steps"}
    tuning = foveal.tune(rows, model="text-classification", budget="2m", settings=settings, quiet=True)
    assert tuning.verdict.command[0] == "foveal"
    assert tuning.verdict.winner.loss is not None
    assert tuning.verdict.winner.loss < 0.69
    assert str(tuning).startswith(tuning.verdict.headline)
    page = tuning._repr_html_()
    assert "<td>seeds-0</td>" in page
    assert "data:image/png;base64,iVBOR" in page
