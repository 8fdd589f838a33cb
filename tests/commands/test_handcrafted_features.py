"""Linear classifiers of features, from a folder of images to a run in use; and what is said of them."""

import json
from pathlib import Path

import pytest
import torch

from tests.support.command_line import predictions, refuse, run_command, succeed
from tests.support.continued_runs import train_from_run
from tests.support.interrupted_command import act_at
from tests.support.labeled_images import SMALL, train, write_images
from tests.support.saved_weights import saved_weights

WORDS = "encoder.blocks.0.feature.words"


class Killed(BaseException):
    """Nothing after it is done."""


@pytest.mark.slow
@pytest.mark.parametrize("network", ["color-histogram", "visual-words", "patch-similarities"])
def test_colours_are_told_from_one_another(network: str) -> None:
    given = ("--model", "hog", f"model.encoder.network={network}", "schedule.warmup_steps=0")
    assert train(write_images(count=120), *given, steps=60)["accuracy"] == 1
    assert predictions("run", "squares/red/1.png")[0]["output"] == "red"


def test_edges_need_a_cell() -> None:
    write_images()
    why = refuse("train", "squares", *SMALL, "--model", "hog", "data.image.size=6")
    assert "6x6 are too small for model.encoder.network=hog" in why


@pytest.mark.slow
def test_a_codebook_outlasts_a_kill_before_the_first_checkpoint() -> None:
    def die() -> None:
        raise Killed

    given = ("squares", "--model", "hog", "model.encoder.network=visual-words")
    write_images()
    train(*given, run="whole")
    with act_at("run made", die), pytest.raises(Killed):
        run_command("train", *given, *SMALL, "--budget", "30steps", "--run", "parts")
    succeed("resume", "parts")
    assert Path("parts/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_another_run_takes_the_codebook() -> None:
    train(write_images(), "--model", "hog", "model.encoder.network=visual-words", steps=2)
    write_images("others", 40, seed=1)
    Path("others/red").rename("others/rose")
    assert "the encoder of run; the head is new" in train_from_run("others")
    assert torch.equal(saved_weights("more")[WORDS], saved_weights("run")[WORDS])


def test_too_few_images_for_a_codebook() -> None:
    why = refuse(
        "train", write_images(count=20), *SMALL, "--model", "hog", "model.encoder.network=visual-words"
    )
    assert "400 words can't be made of" in why


def test_an_image_that_is_no_square_is_described() -> None:
    found = json.loads(succeed("models", "describe", "hog", "--input", "3x240x320", "--json").out)
    assert found["layers"][0]["output"] == [9, 30, 40]
    assert found["parameters"] == 10 * (10_800 + 1)
    assert succeed("models", "describe", "hog").out.count("9x4x4") == 1
    assert "30x40" in succeed("models", "describe", "resnet-20", "--input", "3x120x160").out
    assert "reads only square images" in refuse("models", "describe", "vit", "--input", "3x32x64")
    assert "too small" in refuse("models", "describe", "hog", "--input", "3x240x7")
