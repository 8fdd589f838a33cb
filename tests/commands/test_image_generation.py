"""Drawings: from a folder of images to a run that is resumed, measured, and draws."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import foveal
from foveal.store.sealed import open_tensors
from tests.support.command_line import refuse, run_command, succeed, train_run
from tests.support.interrupted_command import act_at
from tests.support.killed_runs import check_killed_run
from tests.support.labeled_images import SMALL, write_images

TINY = (*SMALL, "--model", "draw", "model.width=16", "task.steps=3", "task.latent_size=4")


@pytest.fixture
def run() -> Path:
    """Of three steps."""
    train_run(write_images(), *TINY, run="run", steps=3)
    return Path("run")


def pixels(name: str) -> NDArray[np.int64]:
    with Image.open(name) as image:
        return np.asarray(image).astype(np.int64)


def write_patterns(folder: str = "patterns", count: int = 50) -> str:
    """Of a black edge, and within it the left half white or the upper one; a point of each is its own."""
    Path(folder).mkdir()
    for number in range(count):
        image = np.zeros((12, 12), np.uint8)
        image[1:-1, 1:-1][(..., slice(5)) if number % 2 else slice(5)] = 255
        image[6:-1, 6:-1].flat[number // 2] = 255
        Image.fromarray(image).save(f"{folder}/{number}.png")
    return folder


def canvas(run: str) -> NDArray[np.float32]:
    """The first of a run, as its weights have it."""
    tensors, _ = open_tensors(Path(run, "model.safetensors").read_bytes(), run)
    return tensors["canvas"].numpy()


@pytest.mark.slow
def test_it_is_learnt_measured_and_draws() -> None:
    """No labels are needed; the images' mean alone costs more than twice as much."""
    given = (write_patterns(), *TINY)
    mean = train_run(*given, "optimizer.lr=1e-20", run="mean", steps=2)
    edge = np.ones((12, 12), bool)
    edge[1:-1, 1:-1] = False
    first = canvas("mean")
    assert first[edge] == pytest.approx(np.log(0.01 / 0.99), abs=1e-4)
    assert first[1:6, 1:6] == pytest.approx(np.log(0.99 / 0.01), abs=1e-4)
    assert (abs(first[1:6, 6:-1]) < 1).all()

    told = succeed("train", *given, "optimizer.lr=2e-2", "--budget", "60steps", "--run", "run", "--json")
    assert "nats measured\n" in told.err
    result = json.loads(told.out)
    assert result["loss"] < mean["loss"] / 2
    assert 0 < result["latent_nats"] < result["loss"]
    assert "perplexity" not in result
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert (again["loss"], again["latent_nats"]) == (result["loss"], result["latent_nats"])
    assert "nats per image" in succeed("evaluate", "run").out
    assert "a model that generates images predicts nothing" in refuse("predict", "run", "patterns")


@pytest.mark.slow
def test_a_stop_and_a_resume_end_as_if_there_had_been_none() -> None:
    """Latent vectors are drawn as a function of (seed, step)."""
    given = (*TINY, "data.augment.crop=pad")
    train_run(write_images(), *given, run="whole", steps=20)
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("train", "squares", *given, "--budget", "20steps", "--run", "parts")
    assert told.code == 130
    succeed("resume", "parts")
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_a_drawing_is_a_function_of_its_seed_and_number(run: Path) -> None:
    succeed("generate", run, "--samples", "12", "--out", "many")
    succeed("generate", run, "--samples", "3", "--out", "few")
    succeed("generate", run, "--samples", "3", "--out", "other", "--seed", "1")
    assert sorted(path.name for path in Path("many").iterdir()) == [
        f"{number:02}.png" for number in range(12)
    ]
    drawing = pixels("many/02.png")
    assert drawing.shape == (12, 12)
    assert np.abs(drawing - pixels("few/2.png")).max() <= 1
    assert (drawing != pixels("other/2.png")).any()


def test_drawings_made_in_several_goes_are_those_made_one_by_one(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = []
    for together in (5, 1):
        monkeypatch.setattr("foveal.tasks.draw.generate.BATCH_SIZE", together)
        succeed("generate", run, "--samples", "12", "--out", f"by{together}")
        sets.append(np.stack([pixels(f"by{together}/{number:02}.png") for number in range(12)]))
    assert np.abs(sets[0] - sets[1]).max() <= 1
    others = np.abs(sets[0][:, None] - sets[0]).max((2, 3)) > 1
    assert others.sum() == 12 * 11, "two drawings are the same"


def test_a_sheet_and_the_steps(run: Path) -> None:
    given = ("--samples", "9", "--out", "sheet.png", "--attention", "steps.png", "--json")
    told = json.loads(succeed("generate", run, *given).out)
    assert (told["count"], told["drawings"], told["steps"]) == (9, "sheet.png", "steps.png")
    made = foveal.load(run).generate(samples=2, out="two.png")
    assert (made.texts, made.values["count"], Path("two.png").exists()) == ([], 2, True)
    assert "drawings: two.png" in str(made)
    assert pixels("sheet.png").shape == (3 * 52 + 4, 3 * 52 + 4, 3)
    assert pixels("steps.png").shape == (8 * 52 + 4, 3 * 52 + 4, 3)


def test_what_does_not_fit_is_a_line(run: Path) -> None:
    assert "set data.image.channels=1" in refuse("train", "squares", *TINY, "data.image.channels=3")
    assert "task.label_smoothing: there is no label" in refuse(
        "train", "squares", *TINY, "task.label_smoothing=0.1"
    )
    assert "balances no experts" in refuse("train", "squares", *TINY, "model.feedforward=moe")
    assert "give --out sheet.png" in refuse("generate", run)
    assert "exists; name a new folder" in refuse("generate", run, "--out", "squares")
    assert "leave out all but" in refuse("generate", run, "--out", "a.png", "--prompt", "a seven")
    assert "leave out all but" in refuse("generate", run, "--out", "a.png", "--beam", "3")
    assert "ends in .png" in refuse("generate", run, "--out", "a.png", "--attention", "b.html")


@pytest.mark.slow
def test_killed_behind_a_checkpoint_it_ends_alike(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_killed_run(here, monkeypatch, write_images, "squares", TINY)
