"""Captions of which not all can be learnt, and what is said of it."""

import json
from pathlib import Path

import pytest

from tests.support.captioned_shapes import SMALL, write_shapes
from tests.support.command_line import refuse, succeed


@pytest.mark.slow
def test_a_collapse_is_told() -> None:
    """As many texts as pictures, and a model that has learnt their most frequent words alone."""
    write_shapes(count=100)
    rows = "".join(f"{n}.png,picture {n} of many\n" for n in range(100))
    Path("shapes/metadata.csv").write_text(f"file_name,text\n{rows}")
    told = succeed("train", "shapes", *SMALL, "data.test_fraction=0.6", "--budget", "8steps", "--run", "run")
    assert "collapsed: only " in told.err
    assert "collapsed: only " in succeed("evaluate", "run").out
    assert "alarm" in json.loads(succeed("evaluate", "run", "--json").out)


def test_what_can_not_be_learned() -> None:
    write_shapes(count=40)
    two = (*SMALL, "--budget", "2steps")
    assert "a caption is of one view" in refuse("train", "shapes", *two, "data.augment.mixup=0.2")
    assert "a caption is of one view" in refuse("train", "shapes", *two, "data.image.tta=ten-crop")
    assert "too small for model.encoder.network=vgg-16" in refuse(
        "train", "shapes", *two, "model.encoder.network=vgg-16"
    )
    assert "model.encoder.kind=image or patches" in refuse("train", "shapes", *two, "model.encoder.kind=text")
    assert "never reads the source" in refuse("train", "shapes", *two, "model.mixers=gru")
    assert "no column 'words'" in refuse("train", "shapes", *two, "--task", "captioning", "data.text=words")
    Path("shapes/metadata.csv").write_text("file_name,text\n" + "".join(f"{n}.png,\n" for n in range(9)))
    assert "'text' is empty; fill it in or leave the row out" in refuse("train", "shapes", *two)
    assert not Path("runs").exists()


def test_what_is_missing_is_listed() -> None:
    write_shapes(count=40)
    Path("shapes/3.png").write_text("no picture")
    table = Path("shapes/metadata.csv")
    table.write_text(table.read_text().replace("7.png,a green bar\n", "", 1).replace("a red bar\n", "\n", 1))
    told = succeed("train", "shapes", *SMALL, "--budget", "1steps", "--run", "run")
    assert "task        captioning: 12 x 12 pixels to " in told.err
    assert "skipped     3 rows" in told.err
    skipped = [json.loads(line) for line in Path("run/skipped.jsonl").read_text().splitlines()]
    assert [row["reason"].split(";")[0].split(" (")[0] for row in skipped] == [
        "'text' is empty",
        "not an image that can be read",
        "no row of metadata.csv names it",
    ]
    assert skipped[2]["location"] == "shapes/7.png"
