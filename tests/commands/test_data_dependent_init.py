"""Layers that begin from training data: what they are given, and that a run keeps what they made of it."""

import os
import signal
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from foveal.config import ImageConfig
from foveal.data.images.image_batches import ImageEvalBatches
from foveal.encoders.image import ImageEncoder
from foveal.heads.flatten_classification import FlattenClassificationHead
from foveal.models.network_registry import NETWORKS
from foveal.store.run import open_run
from foveal.tasks.session import prepare_run_data
from tests.support.command_line import run_command, succeed
from tests.support.continued_runs import train_from_run
from tests.support.interrupted_command import act_at
from tests.support.labeled_images import SMALL, train, write_images
from tests.support.saved_weights import saved_weights

CODES, CODES_FIRST = "encoder.blocks.0.codes", "inputs/start.safetensors"


class Codes(nn.Module):
    """Inner products with `codes`: four of the images that it was fitted on, and a little noise."""

    given: ClassVar[list[Tensor]] = []

    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.zeros(4, 3 * 12 * 12))

    def fit(self, images: Tensor) -> None:
        Codes.given.append(images)
        codes: Any = self.codes
        codes.copy_(images[:4].flatten(1) / 100 + torch.randn(4, 1) / 1000)

    def forward(self, x: Any) -> Tensor:
        return (x.flatten(1) @ self.codes.T)[:, :, None, None]


class Toy:
    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        return ImageEncoder([Codes()], 4)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return FlattenClassificationHead(width, (1, 1), (), classes)


@pytest.fixture(autouse=True)
def squares(here: Path, own_registries: None, monkeypatch: pytest.MonkeyPatch) -> None:
    NETWORKS.add("toy", Toy(), "notebook")
    monkeypatch.setattr(Codes, "given", [])
    write_images()


TOY = ("model.encoder.network=toy", "data.augment.flip=true", "optimizer.lr=1e-2")


def test_it_is_given_images_to_train_on_as_they_are_seen_in_evaluation() -> None:
    train("squares", *TOY, steps=2)
    run = open_run(Path("run"))
    data = prepare_run_data(run, print)
    centres = ImageEvalBatches(data.train.examples, ImageConfig(batch_size=100)).batch(0, 0).columns["source"]
    (images,) = Codes.given
    assert not torch.equal(images, centres)
    order = [images.flatten(1).sum(1).argsort(), centres.flatten(1).sum(1).argsort()]
    assert torch.equal(images[order[0]], centres[order[1]])


def test_not_more_than_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveal.data.images.image_batches.MAX_FIT_PIXELS", 10 * 12 * 12)
    train("squares", *TOY, steps=2)
    assert len(Codes.given[0]) == 10


def test_the_seed_says_what_it_makes_of_them() -> None:
    for run, seed in (("first", 0), ("again", 0), ("other", 1)):
        train("squares", *TOY, f"training.seed={seed}", run=run, steps=2)
    codes = [saved_weights(run)[CODES] for run in ("first", "again", "other")]
    assert torch.equal(codes[0], codes[1])
    assert not torch.equal(codes[0], codes[2])
    assert torch.equal(saved_weights("first", CODES_FIRST)[CODES], codes[0])


def test_a_run_that_ends_before_its_first_checkpoint_is_resumed_with_the_same() -> None:
    class Struck(BaseException): ...

    def die() -> None:
        raise Struck

    train("squares", *TOY, run="whole")
    with act_at("run made", die), pytest.raises(Struck):
        run_command("train", "squares", *SMALL, *TOY, "--budget", "30steps", "--run", "parts")
    assert not any(Path("parts/checkpoints").iterdir())
    Codes.given.clear()
    succeed("resume", "parts")
    assert not Codes.given
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_a_stop_and_a_resume_end_as_if_there_had_been_none() -> None:
    train("squares", *TOY, run="whole")
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        run_command("train", "squares", *SMALL, *TOY, "--budget", "30steps", "--run", "parts")
    succeed("resume", "parts")
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_what_is_taken_from_a_run_is_not_made_anew() -> None:
    train("squares", *TOY, steps=2)
    Codes.given.clear()
    write_images("others", 40, seed=1)
    train_from_run("others")
    assert not Codes.given
    assert torch.equal(saved_weights("more")[CODES], saved_weights("run")[CODES])


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_without_a_block_nothing_is_fitted(network: str) -> None:
    train("squares", f"model.encoder.network={network}", "optimizer.lr=1e-3", steps=2)
    assert not Path("run/inputs/start.safetensors").exists()
