"""What a run gives another of other inputs, or of no encoder."""

import json
from pathlib import Path

import pytest
import torch

from tests.support.command_line import refuse, succeed, train_run
from tests.support.labeled_images import SMALL, write_images
from tests.support.saved_weights import saved_weights
from tests.support.shape_questions import SMALL as ASKED
from tests.support.shape_questions import check_same_image_encoder, write_questions

GLIMPSE = (*SMALL, "--model", "glimpses", "model.width=24", "task.glimpse_size=4")


@pytest.mark.slow
def test_what_was_asked_about_pictures_lends_its_eyes_to_labels() -> None:
    """The network and the statistics of the channels: not what reads the questions."""
    write_questions("shapes", count=20)
    train_run("shapes", *ASKED, "--task", "vqa", run="answers", steps=2)
    more = ("data.label=answer", "model.encoder.network=resnet-20", "optimizer.lr=1e-20")
    given = ("data.image.size=12", "data.image.batch_size=20", "--budget", "1steps", "--run", "labels")
    told = succeed("train", "shapes", "--task", "image-classification", "--from", "answers", *more, *given)
    assert "the encoder of answers; the head is new" in told.err
    check_same_image_encoder("labels", "answers")
    captions = (
        "--model",
        "captioning-bottleneck",
        "data.text=answer",
        "data.tokenizer=word",
        *more[1:],
        *given[:4],
    )
    told = succeed("train", "shapes", "--from", "answers", *captions, "--run", "captions")
    assert "the encoder of answers; the head is new" in told.err


@pytest.mark.slow
def test_a_run_of_captions_goes_on_with_larger_pictures() -> None:
    """Which it sees whole."""
    write_questions("shapes", count=20)
    model = (
        "--model",
        "captioning-bottleneck",
        "data.text=answer",
        "data.tokenizer=word",
        "data.image.batch_size=20",
    )
    small = (*model, "model.width=16", "model.embedding_width=16")
    succeed("train", "shapes", *small, "data.image.size=8", "--budget", "1steps", "--run", "first")
    larger = ("--from", "first", "data.image.size=16", "--budget", "1steps", "--run", "second")
    told = succeed("train", "shapes", *larger)
    assert "the encoder of first; the head is new" in told.err
    kept = [json.loads(path.read_text()) for path in sorted(Path().glob("*/inputs/**/images.json"))]
    assert [inputs["size"] for inputs in kept] == [8, 16]


def test_a_run_without_an_encoder_goes_on_with_its_own_labels_alone() -> None:
    write_images()
    train_run("squares", *GLIMPSE, run="first", steps=2)
    more = ("--from", "first", "--budget", "1steps", "optimizer.lr=1e-20", "--run", "second")
    assert "all weights of first" in succeed("train", "squares", *more).err
    first, second = saved_weights("first"), saved_weights("second")
    assert all(torch.allclose(first[name], second[name]) for name in first)
    Path("squares/red").rename("squares/scarlet")
    line = refuse("train", "squares", "--from", "first", "--budget", "1steps")
    assert "first: its labels are not those of the data" in line
    other = ("--from", "first", "--task", "image-classification", "--model", "image-classification", *SMALL)
    line = refuse("train", "squares", *other)
    assert "first: glimpses has no encoder that another task could use: leave out --from" in line


def test_a_folder_may_have_a_comma_in_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    write_images("red,blue")
    train_run("red,blue", *GLIMPSE, run="run", steps=2)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert json.loads(succeed("evaluate", "../run", "--json").out)["split"] == "test"
