"""Glimpses from a folder of images to a run that is resumed, measured, asked and looked into."""

import json
import math
import os
import signal
from pathlib import Path

import pytest
from PIL import Image

from tests.support.command_line import predictions, refuse, run_command, succeed, train_run
from tests.support.interrupted_command import act_at
from tests.support.labeled_images import SMALL, write_images

TINY = (*SMALL, "--model", "glimpses", "model.width=24", "task.glimpse_size=4", "optimizer.lr=0.1")


def test_a_folder_by_class_is_learnt_and_used() -> None:
    result = train_run(write_images(), *TINY, run="run", steps=40)
    assert result["accuracy"] > 0.9
    assert result["macro_f1"] > 0.8
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert (again["loss"], again["accuracy"]) == (result["loss"], result["accuracy"])
    found = predictions("run", "squares")
    assert sum(Path(one["source"]).parent.name == one["output"] for one in found) > 54
    assert predictions("run", "squares/red/1.png")[0]["output"] in ("blue", "red")


def test_a_path_ends_with_the_answer() -> None:
    """What it says last is what is predicted, and its probability what the loss is of."""
    write_images()
    train_run("squares", *TINY, run="run", steps=8)
    shown = json.loads(succeed("inspect", "run", "glimpses", "--query", "squares", "--json").out)["images"]
    found = {one["source"]: one["output"] for one in predictions("run", "squares")}
    lasts = {one["source"]: one["path"][-1] for one in shown}
    assert {source: last["answer"] for source, last in lasts.items()} == found
    assert len({*found.values()}) == 2
    nats = [
        -math.log(
            last["probability"] if last["answer"] == Path(source).parent.name else 1 - last["probability"]
        )
        for source, last in lasts.items()
    ]
    loss = json.loads(succeed("evaluate", "run", "squares", "--json").out)["loss"]
    assert sum(nats) / len(nats) == pytest.approx(loss, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mixer", ["lstm", "gru"])
def test_a_stop_and_a_resume_end_as_if_there_had_been_none(mixer: str) -> None:
    """The places that are drawn are a function of (seed, step)."""
    given = (*TINY, f"model.mixers={mixer}", "data.augment.crop=pad")
    train_run(write_images(), *given, run="whole", steps=20)
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("train", "squares", *given, "--budget", "20steps", "--run", "parts")
    assert told.code == 130
    succeed("resume", "parts")
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_the_paths_are_drawn() -> None:
    train_run(write_images(), *TINY, run="run", steps=5)
    told = succeed("inspect", "run", "glimpses", "--out", "paths.png", "--json")
    result = json.loads(told.out)
    assert [len(one["path"]) for one in result["images"]] == [6] * 6
    assert all(one["path"][0]["place"] == [0, 0] for one in result["images"])
    with Image.open("paths.png") as picture:
        assert picture.size[0] > 500
    one = json.loads(succeed("inspect", "run", "glimpses", "--query", "squares/red/1.png", "--json").out)
    assert [image["label"] for image in one["images"]] == [None]
    assert "red/1.png" in succeed("inspect", "run", "glimpses", "--query", "squares/red/1.png").out
    assert "ends in .png" in refuse("inspect", "run", "glimpses", "--out", "paths.gif")


def test_what_does_not_fit_is_a_line() -> None:
    write_images()
    assert "a glimpse is of one view" in refuse("train", "squares", *TINY, "data.augment.mixup=0.2")
    assert "task.label_smoothing: what counts" in refuse(
        "train", "squares", *TINY, "--task", "glimpses", "task.label_smoothing=0.1"
    )
    assert "no encoder" in refuse("train", "squares", "--task", "glimpses", "--model", "image-classification")
    train_run("squares", *SMALL, run="plain", steps=1)
    assert "this run has no glimpses" in refuse("inspect", "plain", "glimpses")
