"""`foveal inspect RUN neighbors`: in its table, its JSON and its picture."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.command_line import refuse, succeed
from tests.support.labeled_images import COLOURS, train, write_images


@pytest.fixture
def run(here: Path) -> None:
    train(write_images(), run="run", steps=4)


def near(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeed("inspect", "run", "neighbors", *arguments, "--json").out)
    return found


@pytest.mark.usefixtures("run")
def test_of_pictures_and_of_held_out_images() -> None:
    """A picture that is among the images is its own nearest; by pixels the colours are told apart."""
    found = near("--query", "squares/red/1.png", "--data", "squares", "--nearest", 3, "--out", "sheet.png")
    (query,) = found["queries"]
    assert query["label"] is None
    for space in ("features", "pixels"):
        assert len(query[space]) == 3
        assert query[space][0]["source"].endswith("red/1.png")
        assert query[space][0]["distance"] == pytest.approx(0, abs=1e-6)
        assert [one["distance"] for one in query[space]] == sorted(one["distance"] for one in query[space])
    assert {one["label"] for one in query["pixels"]} == {"red"}
    assert "accuracy" not in found
    with Image.open("sheet.png") as picture:
        assert picture.size[0] > picture.size[1] > 0
    found = near("--measure", "euclidean")
    assert found["accuracy"]["pixels"] == 1
    assert {query["label"] for query in found["queries"]} == set(COLOURS)
    assert len(found["queries"]) == 5
    table = succeed("inspect", "run", "neighbors").out
    assert "pixels 100.0 %" in table
    assert "distances depend on the layer" in table


@pytest.mark.usefixtures("run")
def test_what_has_no_neighbors() -> None:
    assert "ends in .png" in refuse("inspect", "run", "neighbors", "--out", "sheet.gif")
    assert "expected 1 or more" in refuse("inspect", "run", "neighbors", "--nearest", "0")
    assert "nowhere.jpg" in refuse("inspect", "run", "neighbors", "--query", "nowhere.jpg")


def test_a_run_of_texts(finished: Path) -> None:
    told = refuse("inspect", finished, "neighbors")
    assert "needs a run that labels images (this run's task is language-model)" in told
