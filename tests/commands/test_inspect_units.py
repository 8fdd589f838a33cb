"""`foveal inspect RUN units`: in its table, its JSON and its picture."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.command_line import refuse, succeed
from tests.support.labeled_images import PATCHES, train, write_images


@pytest.fixture
def run(here: Path) -> None:
    train(write_images(), run="run", steps=4)


def looked(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeed("inspect", "run", "units", *arguments, "--json").out)
    return found


@pytest.mark.usefixtures("run")
def test_of_held_out_and_of_other_images() -> None:
    found = looked("--out", "units.png")
    assert (found["layer"], found["units"], found["split"]) == ("encoder.blocks.5", 32, "test")
    assert len(found["responses"]) == 40
    assert -1 <= found["control"] <= 1
    for one in found["responses"]:
        window = one["window"]
        assert 0 <= window["top"] < window["bottom"] <= 12
        assert 0 <= window["left"] < window["right"] <= 12
        assert f"/{one['label']}/" in one["source"]
    first = [one["value"] for one in found["responses"] if one["unit"] == found["responses"][0]["unit"]]
    assert first == sorted(first, reverse=True)
    with Image.open("units.png") as picture:
        assert picture.size[1] > 8 * 60
    told = succeed("inspect", "run", "units").out
    assert "encoder.blocks.5, 8 of its 32 units" in told
    assert "says nothing about what the unit has learned" in told
    others = looked("--data", write_images("others", 6, seed=1), "--layer", "encoder.blocks.0.convolution")
    assert {Path(one["source"]).parts[0] for one in others["responses"]} == {"others"}
    assert others["units"] == 16


@pytest.mark.usefixtures("run")
def test_fewer_images_than_are_shown() -> None:
    assert len(looked("--data", write_images("others", 2), "--out", "units.png")["responses"]) == 16


@pytest.mark.usefixtures("run")
def test_what_is_no_layer_of_maps(finished: Path) -> None:
    told = refuse("inspect", "run", "units", "--layer", "encoder.blocks.99")
    assert "run has no such layer; its blocks are encoder.blocks.0, encoder.blocks.1" in told
    assert "makes no feature map of an image; choose one of encoder.blocks.0" in refuse(
        "inspect", "run", "units", "--layer", "encoder"
    )
    assert "makes no feature map of an image; choose one of encoder.blocks.0" in refuse(
        "inspect", "run", "units", "--layer", "head"
    )
    assert "ends in .png" in refuse("inspect", "run", "units", "--out", "units.gif")
    without = "this view needs an image network with trained convolutions"
    assert without in refuse("inspect", finished, "units")
    train("squares", "model.encoder.network=linear", run="linear", steps=1)
    told = refuse("inspect", "linear", "units")
    assert without in told
    assert "the views that fit this run: activations, adversarial" in told
    train("squares", "--model", "hog", run="features", steps=1)
    told = refuse("inspect", "features", "units")
    assert without in told
    assert "the views that fit this run: activations, confusion" in told
    assert "no layer has filters for pixels" in refuse("inspect", "features", "filters")
    assert "output" in succeed("inspect", "features", "activations").out
    train("squares", *PATCHES, run="vit", steps=1)
    assert without in refuse("inspect", "vit", "units")
