"""Who is taken for whom, of labels and of labels at places."""

import json

import numpy as np
from PIL import Image

from tests.support.captioned_shapes import SMALL as CAPTION
from tests.support.captioned_shapes import write_shapes
from tests.support.command_line import refuse, succeed, train_run
from tests.support.labeled_images import SMALL, write_images
from tests.support.small_films import SMALL as FILM
from tests.support.small_films import write_films


def test_of_images() -> None:
    train_run(
        write_images(),
        *SMALL,
        "--task",
        "image-classification",
        "model.encoder.network=linear",
        run="run",
        steps=3,
    )
    told = succeed("inspect", "run", "confusion", "--out", "confusion.png", "--json")
    found, scores = json.loads(told.out), json.loads(succeed("evaluate", "run", "--json").out)
    counts = np.array(found["counts"])
    assert found["labels"] == ["blue", "red"]
    assert counts.sum() == scores["examples"]
    assert counts.trace() / counts.sum() == scores["accuracy"]
    assert found["split"] == scores["split"] == "test"
    assert [one["support"] for one in found["by_class"]] == counts.sum(1).tolist()
    with Image.open(found["picture"]) as picture:
        assert min(picture.size) > 300
    whole = json.loads(succeed("inspect", "run", "confusion", "--data", "squares", "--json").out)
    assert np.array(whole["counts"]).sum(1).tolist() == [30, 30]
    told = succeed("inspect", "run", "confusion")
    assert told.out.splitlines()[0].split() == ["class", "test", "precision", "recall", "f1"]
    assert "ends in .png" in refuse("inspect", "run", "confusion", "--out", "confusion.txt")


def test_of_frames_each_counts() -> None:
    train_run(write_films(), "--model", "frame-tagging", *FILM, run="run", steps=2)
    found = json.loads(succeed("inspect", "run", "confusion", "--json").out)
    scores = json.loads(succeed("evaluate", "run", "--json").out)
    counts = np.array(found["counts"])
    assert counts.sum() == scores["frames"] > scores["examples"]
    assert counts.trace() / counts.sum() == scores["accuracy"]


def test_a_run_that_writes_has_no_classes() -> None:
    write_shapes(count=30)
    train_run("shapes", "--model", "captioning-bottleneck", *CAPTION, run="run", steps=1)
    assert "this run predicts no classes (task captioning)" in refuse("inspect", "run", "confusion")
