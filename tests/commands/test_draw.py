"""Drawings: from a folder of images to a run that is resumed, measured, and draws."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.commands.calling import call, refuse, succeed, trained
from tests.commands.strike import at
from tests.commands.test_images import SMALL, write_images

TINY = (*SMALL, "--model", "draw", "model.width=16", "model.draw.steps=3", "model.draw.latent=4")


@pytest.fixture
def run() -> Path:
    """Of three steps."""
    trained(write_images(), *TINY, run="run", steps=3)
    return Path("run")


def pixels(name: str) -> NDArray[np.int64]:
    with Image.open(name) as image:
        return np.asarray(image).astype(np.int64)


def test_it_is_learnt_measured_and_draws() -> None:
    write_images()
    shutil.move("squares/red/1.png", "squares/loose.png")  # no labels are needed
    given = (*TINY, "optimizer.rate=1e-2", "--budget", "25steps", "--run", "run", "--json")
    told = succeed("train", "squares", *given)
    assert "nats measured\n" in told.err
    result = json.loads(told.out)
    assert result["loss"] < 98
    assert "perplexity" not in result
    assert json.loads(succeed("evaluate", "run", "--json").out)["loss"] == result["loss"]
    assert "nats per image" in succeed("evaluate", "run").out
    assert "a model that draws has no answers" in refuse("predict", "run", "squares")


def test_a_stop_and_a_resume_end_as_if_there_had_been_none() -> None:
    """Latent vectors are drawn as a function of (seed, step)."""
    given = (*TINY, "data.augment.crop=shift")
    trained(write_images(), *given, run="whole", steps=20)
    with at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = call("train", "squares", *given, "--budget", "20steps", "--run", "parts")
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


def test_a_sheet_and_the_steps(run: Path) -> None:
    given = ("--samples", "9", "--out", "sheet.png", "--attention", "steps.png", "--json")
    told = json.loads(succeed("generate", run, *given).out)
    assert (told["samples"], told["drawings"], told["steps"]) == (9, "sheet.png", "steps.png")
    assert pixels("sheet.png").shape == (3 * 52 + 4, 3 * 52 + 4, 3)
    assert pixels("steps.png").shape == (8 * 52 + 4, 3 * 52 + 4, 3)


def test_what_does_not_fit_is_a_line(run: Path) -> None:
    assert "set data.image.channels=1" in refuse("train", "squares", *TINY, "data.image.channels=3")
    assert "task.smoothing: there is no label" in refuse("train", "squares", *TINY, "task.smoothing=0.1")
    assert "balances no experts" in refuse("train", "squares", *TINY, "model.feedforward=experts")
    assert "say where to" in refuse("generate", run)
    assert "there already" in refuse("generate", run, "--out", "squares")
    assert "leave out all but" in refuse("generate", run, "--out", "a.png", "--prompt", "a seven")
    assert "leave out all but" in refuse("generate", run, "--out", "a.png", "--beam", "3")
    assert "ends in .png" in refuse("generate", run, "--out", "a.png", "--attention", "b.html")
