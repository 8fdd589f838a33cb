"""`foveal inspect RUN filters`: in its table, its JSON and its picture."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support.captioned_shapes import train as train_captions
from tests.support.captioned_shapes import write_shapes
from tests.support.command_line import refuse, succeed
from tests.support.labeled_images import train, write_images


def looked(run: object, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeed("inspect", run, "filters", *arguments, "--json").out)
    return found


def test_a_linear_classifier_has_a_template_for_each_class() -> None:
    train(write_images(), "model.encoder.network=linear", "model.dropout=0", steps=10)
    found = looked("run", "--out", "templates.png")
    assert (found["labels"], found["shape"]) == (["blue", "red"], [2, 3, 1, 12, 12])
    with Image.open("templates.png") as picture:
        pixels = np.asarray(picture.convert("RGB"), float)[60:-60]
    blue, red = pixels[:, 40:360], pixels[:, 560:880]
    assert blue[..., 2].mean() > blue[..., 0].mean() + 10, "a blue template"
    assert red[..., 0].mean() > red[..., 2].mean() + 10, "a red one"
    told = succeed("inspect", "run", "filters").out
    assert "templates  2 of 3 x 12 x 12" in told
    assert "gray is 0" in told


def test_of_networks_and_of_captions() -> None:
    train(write_images(), steps=2)
    found = looked("run")
    assert (found["layer"], found["shape"]) == ("encoder.blocks.0.convolution", [16, 3, 1, 3, 3])
    assert "labels" not in found
    assert len(found["norms"]) == 16
    assert "filters  16 of 3 x 3 x 3" in succeed("inspect", "run", "filters").out
    train_captions(write_shapes(count=20), run="told", steps=1)
    assert looked("told")["shape"] == [16, 3, 1, 3, 3]


def test_what_has_no_filters(finished: Path) -> None:
    assert "this view needs an encoder of images, and this run has none" in refuse(
        "inspect", finished, "filters"
    )
    train(write_images(), "--model", "hog", "data.image.size=16", steps=1)
    assert "no layer has filters for pixels: model.encoder.network=" in refuse("inspect", "run", "filters")
    assert "ends in .png" in refuse("inspect", "run", "filters", "--out", "filters.gif")
    assert "always uses the run's settings" in refuse("inspect", "run", "filters", "model.width=3")


@pytest.mark.parametrize("network", ["airbench", "vit"])
def test_a_picture_of_any_first_layer(network: str) -> None:
    size = 31 if network == "airbench" else 12
    few = ("data.image.size=31", "model.encoder.network=airbench") if size == 31 else ("--model", "vit")
    train(write_images(), *few, steps=1)
    found = looked("run", "--out", "filters.png")
    assert found["idle"] == 0
    with Image.open("filters.png") as picture:
        assert 900 < picture.size[0] < 1100
