"""Runs that can't be used: one line says which file and how to fix it, and the run stays as it is."""

import pickle
import shutil
from pathlib import Path

import pytest

from benchmarks.kill import story
from tests.support.command_line import TINY_MODEL, refuse, succeed


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def stopped(run: Path) -> Path:
    """A run whose report is not made yet, so that it can be resumed."""
    (run / "curves.png").unlink()
    return run


def test_a_finished_run(run: Path) -> None:
    line = refuse("resume", "run")
    assert "run: finished after 20 steps; to go on: foveal resume run --budget +10m" in line


def test_missing_weights_are_written_again(run: Path) -> None:
    weights = run / "model.safetensors"
    content = weights.read_bytes()
    weights.unlink()
    line = refuse("evaluate", run)
    assert f"{weights}: missing; foveal resume {run} writes those of the newest checkpoint" in line
    assert f"{weights} is written again, from a checkpoint; finished after 20 steps" in refuse("resume", run)
    assert weights.read_bytes() == content


def test_what_is_no_run() -> None:
    for command in ("resume", "generate", "evaluate"):
        assert "nothing: no such run" in refuse(command, "nothing")
        assert "text.txt: not a Foveal run" in refuse(command, "text.txt")
    Path("other").mkdir()
    Path("other", "run.json").write_text("{}")
    assert "other/run.json: damaged or edited" in refuse("resume", "other")
    assert "nothing: no such run" in refuse("train", "text.txt", "--from", "nothing")


@pytest.mark.parametrize("command", ["resume", "generate", "evaluate"])
@pytest.mark.parametrize("name", ["config.toml", "inputs/text/tokenizer.json"])
def test_an_edited_run(stopped: Path, command: str, name: str) -> None:
    with (stopped / name).open("a") as file:
        file.write("\n")
    line = refuse(command, stopped)
    assert f"run/{name}: edited since the run was created; restore the file, or train a new run" in line
    (stopped / name).unlink()
    assert f"run/{name}: missing" in refuse(command, stopped)


@pytest.mark.parametrize("name", ["run.json", "plan.json"])
def test_flipped_facts(stopped: Path, name: str) -> None:
    flip(stopped / name)
    assert f"run/{name}: damaged or edited: its content does not match its own sha256; restore it" in refuse(
        "resume", stopped
    )


@pytest.mark.parametrize("command", ["generate", "evaluate", "resume"])
def test_flipped_weights(stopped: Path, command: str) -> None:
    if command == "resume":
        for checkpoint in (stopped / "checkpoints").iterdir():
            flip(checkpoint / "best.safetensors")
    flip(stopped / "model.safetensors")
    line = refuse(command, stopped)
    assert ".safetensors: damaged" in line
    assert "restore" in line


@pytest.mark.parametrize("command", ["generate", "evaluate"])
def test_weights_that_hold_pickle(run: Path, command: str) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (Path("sprung"),)

    (run / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    assert "model.safetensors: not a safetensors file of Foveal (pickle is never read)" in refuse(
        command, run
    )
    assert not Path("sprung").exists()


def test_a_checkpoint_that_holds_pickle(stopped: Path) -> None:
    for checkpoint in (stopped / "checkpoints").iterdir():
        (checkpoint / "weights.safetensors").write_bytes(pickle.dumps({"weights": 1}))
    line = refuse("resume", stopped)
    assert "no checkpoint can be used (restore one, or train a new run)" in line
    assert "weights.safetensors: damaged" in line


def test_every_checkpoint_damaged(stopped: Path) -> None:
    for checkpoint in (stopped / "checkpoints").iterdir():
        flip(checkpoint / "optimizer.safetensors")
    before = (stopped / "metrics.jsonl").read_bytes()
    line = refuse("resume", stopped)
    assert "run/checkpoints: no checkpoint can be used (restore one, or train a new run)" in line
    assert "optimizer.safetensors: damaged" in line
    assert (stopped / "metrics.jsonl").read_bytes() == before


def test_a_checkpoint_of_another_run(stopped: Path) -> None:
    succeed("train", "text.txt", *TINY_MODEL, "--budget", "25steps", "--run", "other")
    shutil.copytree("other/checkpoints/25", stopped / "checkpoints" / "25")
    assert "checkpoints/25: a checkpoint of another run; move it away" in refuse("resume", stopped)
    shutil.rmtree(stopped / "checkpoints" / "25")
    succeed("resume", stopped)


def test_data_that_changed(here: Path) -> None:
    succeed("train", "text.txt", *TINY_MODEL, "--budget", "2steps", "--run", "own")
    Path("own", "curves.png").unlink()
    Path("text.txt").write_text(story(seed=2))
    line = refuse("resume", "own")
    assert (
        "text.txt: the split train has changed since own was made; restore the data, or train a new run"
        in line
    )
    assert "has changed since own was made" in refuse("evaluate", "own")
    Path("text.txt").unlink()
    assert "text.txt: gone, and own was trained on it; restore it" in refuse("resume", "own")


def test_a_log_that_was_cut(stopped: Path) -> None:
    (stopped / "metrics.jsonl").write_text("")
    assert "metrics.jsonl: shorter than its checkpoint says" in refuse("resume", stopped)


def test_a_run_of_a_newer_version(stopped: Path) -> None:
    from foveal.store.sealed import open_json, seal_json

    facts = open_json((stopped / "run.json").read_bytes(), "run.json")
    (stopped / "run.json").write_bytes(seal_json(facts | {"format": 99}))
    assert "written by a newer version of Foveal (0.1.0): upgrade" in refuse("resume", stopped)


def test_another_model_than_that_to_start_from(run: Path) -> None:
    line = refuse("train", "text.txt", "--from", run, "model.width=32")
    assert "its model does not fit: leave out --model and model.* settings" in line
