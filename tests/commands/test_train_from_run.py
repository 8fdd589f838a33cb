"""Other labels for a run's encoder: what is taken of it, what is new, and what stays as it is."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

import foveal
from foveal.encoders.patches import interpolate_positions
from tests.support.command_line import refuse, run_command, succeed
from tests.support.continued_runs import train_from_run
from tests.support.interrupted_command import act_at
from tests.support.labeled_images import PATCHES, train, write_images
from tests.support.reviews import reviews
from tests.support.saved_weights import saved_weights
from tests.support.small_series import SMALL as STEPS
from tests.support.small_series import write_steps, write_ts
from tests.support.small_texts import SMALL as WORDS

WHOLE, ENCODER = "all weights of run", "the encoder of run; the head is new"


@pytest.fixture
def seen(here: Path) -> dict[str, torch.Tensor]:
    """The weights of `run`, which tells blue from red; and images of others, `others`."""
    train(write_images(), steps=6)
    write_images("others", 40, seed=1)
    for old, new in (("blue", "sea"), ("red", "rose")):
        Path("others", old).rename(Path("others", new))
    return saved_weights("run")


def encoder_of(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in weights.items() if name.startswith("encoder.")}


def test_other_classes_of_images(seen: dict[str, torch.Tensor]) -> None:
    """The frozen encoder stays bit for bit, with its running statistics; the labels are the data's."""
    told = train_from_run("others", "training.freeze=encoder", "optimizer.lr=0.1", steps=12)
    assert ENCODER in told
    for name, tensor in encoder_of(saved_weights("more")).items():
        assert torch.equal(tensor, seen[name]), name
    first, more = foveal.load("run").processor, foveal.load("more").processor
    assert more.target.labels == ("rose", "sea")
    assert more.source.statistics == first.source.statistics
    assert not torch.equal(saved_weights("more")["head.projection.weight"], seen["head.projection.weight"])
    assert json.loads(succeed("evaluate", "more", "--json").out)["accuracy"] > 0.5


def test_all_layers_learn_other_classes(seen: dict[str, torch.Tensor]) -> None:
    """The run's encoder is where they begin; where rates fall with the depth the lowest go a short way."""
    fallen = ["optimizer.layer_decay=0.1"]
    train_from_run("others", run="whole", steps=1)
    train_from_run("others", *fallen, run="fallen", steps=1)
    for name, tensor in encoder_of(saved_weights("fallen", "inputs/start.safetensors")).items():
        assert torch.equal(tensor, seen[name]), name
    after = {run: saved_weights(run) for run in ("whole", "fallen")}
    name = "encoder.blocks.9.body.1.convolution.weight"
    ways = [(after[run][name] - seen[name]).norm() for run in after]
    torch.testing.assert_close(ways[1], 0.1 * ways[0], rtol=0.01, atol=0)
    assert not torch.equal(
        after["whole"]["encoder.blocks.0.norm.running_mean"], seen["encoder.blocks.0.norm.running_mean"]
    )


def test_the_same_classes(seen: dict[str, torch.Tensor]) -> None:
    """All weights are taken, but not for a size that the head was not made for."""
    write_images("again", 40, seed=2)
    told = train_from_run("again", "optimizer.lr=1e-9")
    assert WHOLE in told
    torch.testing.assert_close(
        saved_weights("more")["head.projection.weight"], seen["head.projection.weight"], rtol=0, atol=1e-6
    )
    assert ENCODER in train_from_run("again", "data.image.size=16", run="larger")


def test_a_stop_and_a_resume_with_another_head(seen: dict[str, torch.Tensor]) -> None:
    given = ("others", "--from", "run", "training.freeze=encoder", "--budget", "12steps", "--run")
    succeed("train", *given, "whole")
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        assert run_command("train", *given, "parts").code == 130
    succeed("resume", "parts")
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_images_that_the_encoder_does_not_see(seen: dict[str, torch.Tensor]) -> None:
    why = refuse("train", "others", "--from", "run", "data.image.channels=1")
    assert "run: its encoder reads other images" in why


def test_images_of_another_size_have_positions_between_those_of_the_patches(here: Path) -> None:
    token = ("model.encoder.pooling=cls", "model.head_pooling=encoder")
    train(write_images(), *PATCHES, *token, steps=2)
    train_from_run("squares", "data.image.size=32", "training.freeze=encoder", steps=1)
    name = "encoder.stack.positioned.position.table"
    before, after = saved_weights("run")[name], saved_weights("more")[name]
    assert len(after) == 64 + 1 > len(before)
    assert torch.equal(after, interpolate_positions(before, 65, 1))
    assert torch.equal(saved_weights("more")["encoder.token"], saved_weights("run")["encoder.token"])


def test_other_labels_of_series_and_of_their_steps() -> None:
    succeed("train", write_ts(), *STEPS, "--budget", "2steps", "--run", "run")
    assert WHOLE in train_from_run("slopes.ts")
    Path("others.ts").write_text(Path("slopes.ts").read_text().replace("up", "high").replace("down", "low"))
    assert ENCODER in train_from_run("others.ts", run="others")
    assert foveal.load("others").processor.target.labels == ("high", "low")
    assert foveal.load("others").processor.source == foveal.load("run").processor.source
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 2)) + 30
    np.savez("steps.npz", x=x, y=np.where(x[:, 0] > 30, "in", "out"), lengths=np.full(60, 5))
    told = train_from_run("steps.npz", "--task", "series-tagging", run="steps")
    assert ENCODER in told
    why = refuse("train", write_steps(), "--from", "steps")
    assert "1 channels, and the model reads 2" in why


def test_other_labels_of_texts() -> None:
    succeed("train", reviews(), *WORDS, "--budget", "2steps", "--run", "run")
    assert WHOLE in train_from_run("reviews.csv")
    reviews("others.csv", ("hen", "dog", "cow"))
    assert ENCODER in train_from_run("others.csv", run="others")
    inputs = foveal.load("others").processor
    assert inputs.target.labels == ("cow", "dog", "hen")
    assert inputs.source.digest == foveal.load("run").processor.source.digest
