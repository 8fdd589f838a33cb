"""Images: from a folder or zip of them to a run that is resumed and used."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import foveal
from foveal.data.core.batching import ExampleBatch
from foveal.objectives.classification import ClassificationObjective
from tests.support.command_line import predictions, refuse, run_command, succeed
from tests.support.interrupted_command import act_at
from tests.support.labeled_images import PATCHES, SMALL, train, write_images
from tests.support.recorded_calls import record_calls


@pytest.mark.parametrize("model", [(), PATCHES])
def test_a_folder_by_class(model: tuple[str, ...]) -> None:
    result = train(write_images(), *model)
    assert result["accuracy"] == 1
    assert result["by_length"] == []
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again["accuracy"] == result["accuracy"]
    found = predictions("run", "squares")
    assert {Path(one["source"]).parent.name == one["output"] for one in found} == {True}
    assert len(found) == 60
    one = Path("squares/red/1.png")
    assert predictions("run", str(one))[0]["output"] == "red"


def test_how_probable_a_label_is_and_how_many_are_sure() -> None:
    train(write_images(), "--model", "glimpses", "model.width=16", "optimizer.lr=0.1")
    told = succeed("predict", "run", "squares", "--json")
    found = json.loads(told.out)
    chances = [one["probability"] for one in found["predictions"]]
    assert all(0.5 <= chance <= 1 for chance in chances)
    assert found["sure"] == sum(chance > 0.9 for chance in chances) / 60
    assert sum(found["labels"].values()) == 60
    counted = ", ".join(f"{name} {count}" for name, count in found["labels"].items())
    assert (
        f"{counted}; {100 * found['sure']:.1f} % with a probability"
        in succeed("predict", "run", "squares").err
    )


@pytest.mark.slow
def test_a_zip_in_parts_and_a_table_give_the_same() -> None:
    write_images("all/train")
    write_images("all/test", 20, seed=1)
    shutil.make_archive("all", "zip", "all")
    results = [train(data, run=f"of-{data}") for data in ("all", "all.zip")]
    assert results[0]["loss"] == results[1]["loss"]
    assert results[0]["split"] == "test"
    files = sorted(Path("all/train").glob("*/*"))
    Path("table").mkdir()
    rows = ["file_name,label"]
    for file in files:
        shutil.copy(file, f"table/{file.parent.name}-{file.name}")
        rows.append(f"{file.parent.name}-{file.name},{file.parent.name}")
    Path("table/metadata.csv").write_text("\n".join(rows))
    assert train("table", run="table-run")["accuracy"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        ("data.augment.cutout=3", "data.augment.flip=true", "training.ema_decay=0.9"),
        ("--model", "airbench", "data.augment.mixup=0.4", "data.image.size=16"),
    ],
    ids=["residual", "whitened"],
)
def test_a_stop_and_a_resume_end_as_if_there_had_been_none(given: tuple[str, ...]) -> None:
    """Batch norm's statistics are kept, and every change of an image is a function of its place."""
    write_images()
    train("squares", *given, run="whole")
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("train", "squares", *SMALL, *given, "--budget", "30steps", "--run", "parts")
    assert told.code == 130
    succeed("resume", "parts")
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


@pytest.mark.slow
def test_another_head_s_weights_go_on() -> None:
    write_images()
    train("squares")
    told = succeed("train", "squares", *SMALL, "--from", "run", "--budget", "2steps", "--run", "more")
    assert "all weights of run" in told.err


def test_what_is_no_image_is_listed_and_the_rest_is_used() -> None:
    write_images()
    Path("squares/red/cut.png").write_bytes(Path("squares/red/1.png").read_bytes()[:60])
    Path("squares/red/empty.jpg").write_bytes(b"")
    Path("squares/red/text.png").write_text("no image")
    told = succeed(
        "train", "squares", *SMALL, "--task", "text-classification", "--budget", "2steps", "--run", "run"
    )
    assert "skipped     3 rows" in told.err
    listed = Path("run/skipped.jsonl").read_text()
    assert all(name in listed for name in ("cut.png", "empty.jpg", "text.png"))


def test_what_can_not_be_learned() -> None:
    write_images()
    assert "data.image.size=12 is not a multiple" in refuse(
        "train", "squares", *SMALL, *PATCHES, "model.encoder.patch_size=5"
    )
    assert "did you mean 'resnet-18'" in refuse("train", "squares", *SMALL, "model.encoder.network=resnet18")
    shutil.rmtree("squares/red")
    assert "all of the 30 images" in refuse(
        "train", "squares", *SMALL, "data.valid_fraction=0", "data.test_fraction=0"
    )
    Path("nothing").mkdir()
    refuse("train", "nothing", "--task", "image-classification")


def test_a_network_is_described() -> None:
    """As published, or for one's own images."""
    found = json.loads(succeed("models", "describe", "resnet-50", "--json").out)
    assert (found["parameters"], found["classes"]) == (25_557_032, 1000)
    small = json.loads(succeed("models", "describe", "resnet-20", "--input", "1x28x28", "--json").out)
    assert small["layers"][0]["output"] == [16, 28, 28]
    assert small["parameters"] == 269_722 - 2 * 16 * 9
    table = succeed("models", "describe", "lenet-5").out.splitlines()
    assert table[0] == "lenet-5: An image network as published."
    assert table[3].split() == [
        "encoder.blocks.0.0",
        "Conv2d",
        "6x28x28",
        "156",
        "117,600",
        "5x5",
        "18.8",
        "kB",
    ]
    total = table[table.index("", 2) - 1]  # settings come after the table
    assert total.split()[1:3] == ["61,706", "416,520"]
    assert "head.projection" in succeed("models", "describe", "vit", "--classes", "7").out
    assert "did you mean 'resnet-50'" in refuse("models", "describe", "resnet50")
    assert "expected channels" in refuse("models", "describe", "vgg-16", "--input", "3x32")
    assert "too small for model.encoder.network=vgg-16" in refuse(
        "models", "describe", "vgg-16", "--input", "3x8x8"
    )
    assert "lstm reads no images" in refuse("models", "describe", "lstm", "--input", "3x8x8")


@pytest.mark.slow
def test_a_run_is_asked_several_views(monkeypatch: pytest.MonkeyPatch) -> None:
    train(write_images(), steps=2)
    calls = record_calls(monkeypatch, ClassificationObjective, "_logits")
    once = json.loads(succeed("evaluate", "run", "--json").out)
    asked = ("--tta", "ten-crop", "--tta-scales", "1,1.5", "--json")
    often = json.loads(succeed("evaluate", "run", *asked).out)
    assert [len(batch.columns["source"]) for _, batch in calls] == [
        once["examples"],
        *[20] * once["examples"],
    ]
    assert often["loss"] != once["loss"]
    succeed("predict", "run", "squares/red/1.png", *asked)
    assert calls[-1][1].columns["source"].shape == (20, 3, 12, 12)
    assert "'none', 'flip', 'flip-shift' or 'ten-crop'" in refuse("evaluate", "run", "--tta", "all")
    assert "such as 1,1.125" in refuse("predict", "run", "squares", "--tta-scales", "none")
    Path("text.txt").write_text("to be or not to be " * 200)
    succeed(
        "train",
        "text.txt",
        "--budget",
        "1steps",
        "--run",
        "writer",
        "data.context_length=8",
        "data.batch_tokens=64",
    )
    assert "--tta is for runs of images" in refuse("evaluate", "writer", "--tta", "ten-crop")


def test_a_network_by_its_name() -> None:
    """Of images as it was published for, if nothing else is said."""
    told = succeed(
        "train", write_images(count=20), "--model", "lenet-5", "data.image.batch_size=4", "--budget", "1steps"
    )
    assert "runs/squares-lenet-5-1" in told.err
    config = foveal.load("runs/squares-lenet-5-1").config
    assert config.model.encoder.network == "lenet-5"
    assert (config.data.image.size, config.data.image.channels) == (32, 1)
    succeed("train", "squares", "--model", "resnet-20", *SMALL, "--budget", "1steps", "--run", "small")
    assert foveal.load("small").config.data.image.size == 12
    line = refuse("train", "squares", "--task", "captioning", "--model", "resnet-18")
    assert "labels images; for captioning, set model.encoder.network=resnet-18" in line


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_loss_and_scores_are_of_one_pass_in_the_precision_of_the_training(monkeypatch, precision) -> None:
    asked, rows, plain = set(), [], ClassificationObjective._logits

    def noted(self: ClassificationObjective, batch: ExampleBatch) -> Any:
        asked.add(torch.is_autocast_enabled("cpu"))
        rows.append(len(batch.rows))
        return plain(self, batch)

    train(write_images(), f"training.precision={precision}", steps=1)
    monkeypatch.setattr(ClassificationObjective, "_logits", noted)
    succeed("evaluate", "run")
    assert asked == {precision == "bfloat16"}
    assert sum(rows) == 12
    asked.clear()
    succeed("predict", "run", "squares")
    assert asked == {False}


HARDEST = (
    "--model",
    "airbench",
    "task.select_fraction=0.5",
    "data.augment.padding=1",
    "training.ema_decay=0",
)


@pytest.mark.slow
def test_the_harder_half_is_learned_and_a_judge_can_be_left_out_or_added() -> None:
    data = write_images()
    result = train(data, *HARDEST)
    assert result["accuracy"] == 1
    assert json.loads(succeed("evaluate", "run", "--json").out)["accuracy"] == 1
    weights = foveal.load("run").model.state_dict()
    assert any(name.startswith("proxy.") for name in weights)
    for share in (1, 0.5):  # without a proxy, and from there with a new one
        before = "run" if share == 1 else "run-1"
        again = [*HARDEST[3:], f"task.select_fraction={share}"]
        train(data, "--from", before, *again, run=f"run-{share}", steps=1)
        found = foveal.load(f"run-{share}").model
        assert any(name.startswith("proxy.") for name in found.state_dict()) == (share < 1)
    whitening = found.proxy.encoder.blocks[0].weight
    torch.testing.assert_close(whitening, weights["encoder.blocks.0.weight"])
    assert "unknown key 'task.select_fraction'; known: task.glimpse_scales" in refuse(
        "train", data, "--task", "glimpses", "task.select_fraction=0.5"
    )
    assert "6x6 are too small for its proxy" in refuse(
        "train", data, "data.image.size=6", "task.select_fraction=0.5"
    )


def test_no_more_of_a_border_is_mirrored_than_there_is() -> None:
    data, crop = write_images(), ("data.image.size=8", "data.augment.crop=reflect-pad")
    told = refuse("train", data, *crop, "data.augment.padding=8")
    assert "data.augment.padding=8: the mirror image of a border of 8 pixels is at most 7 wide" in told
    succeed("train", data, *crop, "data.augment.padding=7", "--budget", "1steps", "--run", "run")
    assert "one pixel has none aside" in refuse(
        "train", data, "data.image.size=1", "data.image.tta=flip-shift"
    )
