"""Another task starts from a run: its own preset, with the encoder of the run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import foveal
from foveal.config import read_preset
from tests.support import captioned_shapes, labeled_images, small_series, small_texts
from tests.support.command_line import refuse, succeed, train_run
from tests.support.saved_weights import saved_weights
from tests.support.shape_questions import SMALL as ASKED
from tests.support.shape_questions import write_questions
from tests.support.small_texts import write_labels, write_pairs, write_tones

SMALL_DECODER = ("model.width=16", "model.embedding_width=8")


class Change(NamedTuple):
    """A run of one task, and a new task on other data."""

    write: Callable[[], object]
    data: str
    train: tuple[str, ...]
    other_data: str
    task: str
    more: tuple[str, ...] = SMALL_DECODER
    kept: tuple[str, ...] = ()
    """Settings that the encoder or its processor fixes."""


def tones() -> None:
    """Write tones with a text, and the same with labels."""
    write_tones("spoken")
    write_tones("labeled")
    table = Path("labeled/metadata.csv")
    table.write_text(table.read_text().replace("file_name,text", "file_name,label"))


def images() -> None:
    labeled_images.write_images()
    captioned_shapes.write_shapes(count=20)


def texts() -> None:
    write_labels()
    write_pairs()


def series() -> None:
    small_series.write_ts()
    rows = small_series.slopes()
    lines = [json.dumps({"values": values.tolist(), "text": f"goes {name}"}) for values, name in rows]
    Path("told.jsonl").write_text("\n".join(lines))


def questions() -> None:
    write_questions(count=20)


CHANGES = {
    "recordings": Change(
        tones,
        "labeled",
        ("data.sample_rate=8000", "data.mel_bins=12", "model.encoder.width=16", "model.encoder.layers=1"),
        "spoken",
        "speech-recognition",
        kept=("data.sample_rate", "data.mel_bins"),
    ),
    "images": Change(
        images,
        "squares",
        ("data.image.size=12", "data.image.channels=1", "model.encoder.network_activation=elu"),
        "shapes",
        "captioning",
        kept=("data.image.size", "data.image.channels"),
    ),
    "texts": Change(
        texts,
        "labels.csv",
        (*small_texts.TAGS, "data.tokenizer=character"),
        "pairs.tsv",
        "translation",
        ("model.width=16",),
        kept=("data.tokenizer",),
    ),
    "series": Change(series, "slopes.ts", small_series.SMALL, "told.jsonl", "series-captioning"),
    "answers": Change(
        questions,
        "shapes",
        (*ASKED, "data.tokenizer=character", "model.encoder.network_activation=elu"),
        "shapes",
        "vqa-generate",
        kept=("data.image.size", "data.tokenizer", "task.question.width", "task.fusion.width"),
    ),
}


def setting(config: object, key: str) -> object:
    for name in key.split("."):
        config = config[name] if isinstance(config, dict) else getattr(config, name)
    return config


@pytest.mark.parametrize("name", CHANGES)
def test_a_task_with_a_decoder_takes_its_preset_and_the_encoder(name: str) -> None:
    change = CHANGES[name]
    change.write()
    train_run(change.data, *change.train, run="run", steps=1)
    given = ("--from", "run", "--task", change.task, *change.more, "--budget", "1steps", "--run", "more")
    told = succeed("train", change.other_data, *given)
    assert "the encoder of run; the head is new" in told.err
    first, more = foveal.load("run").config, foveal.load("more").config
    assert more.model.encoder == first.model.encoder
    assert more.model.mixers == read_preset(change.task)["model"]["mixers"]
    for key in change.kept:
        assert setting(more, key) == setting(first, key), key
    weights, start = saved_weights("run"), saved_weights("more", "inputs/start.safetensors")
    own = [key for key in weights if key.startswith("encoder.")]
    assert own
    assert all(torch.equal(weights[key], start[key]) for key in own)


def test_what_reads_something_else_is_refused_with_what_works() -> None:
    tones()
    train_run("labeled", *CHANGES["recordings"].train, run="run", steps=1)
    for choice in ("--task", "--model"):
        line = refuse("train", "spoken", "--from", "run", choice, "captioning")
        assert "run: its encoder (convolution) does not read the source of captioning" in line
        assert "audio-classification, audio-tagging, speech-recognition" in line
    line = refuse("train", "spoken", "--from", "run", "--model", "speech-recognition")
    assert "leave out --model and model.encoder.* settings, and name --task speech-recognition" in line
    line = refuse("train", "spoken", "--from", "run", "--task", "speech-recognition", "data.mel_bins=20")
    assert "data.mel_bins belongs to the weights" in line
