"""`foveal inspect RUN model-map`, and of models before training."""

import json
from pathlib import Path

import pytest
from PIL import Image

from tests.support.command_line import refuse, succeed

SMALL = ("data.image.size=8", "data.image.batch_size=2")


@pytest.mark.parametrize("text", ["a", "the old " * 9])
def test_of_a_language_model(text: str, run: Path) -> None:
    result = json.loads(
        succeed("inspect", run, "model-map", "--text", text, "--out", "map.png", "--json").out
    )
    names = [box["name"] for box in result["boxes"]]
    assert names[0] == "input:tokens"
    assert {"embedding", "projection", "output"} <= set(names)
    with Image.open("map.png") as picture:
        assert picture.size[1] > picture.size[0] > 300


def test_unrolled(run: Path) -> None:
    result = json.loads(succeed("inspect", run, "model-map", "--unrolled", "--text", "ab", "--json").out)
    (graph,) = result["panels"]
    assert [node["lines"] for node in graph["nodes"] if node["name"].startswith("x")] == [
        ["x1", "a"],
        ["x2", "b"],
    ]


def test_of_a_network_before_training() -> None:
    printed = succeed("inspect", "resnet-20", "model-map", *SMALL, "--depth", "4", "--out", "map.svg").out
    assert "269,722" in printed
    assert "encoder.blocks.9.body" in printed
    assert "<svg" in Path("map.svg").read_text()


def test_what_does_not_fit(run: Path) -> None:
    assert "--depth 99: expected 1 to" in refuse("inspect", run, "model-map", "--depth", "99")
    assert "show a run: leave them out" in refuse("inspect", "mlp", "model-map", *SMALL, "--unrolled")
    assert "--text is empty" in refuse("inspect", run, "model-map", "--text", "")
    for text in ("😀", "שלום"):
        assert "do not occur in the training text" in refuse("inspect", run, "model-map", "--text", text)
