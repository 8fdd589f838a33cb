"""Recordings to labels, from the command line: by class, with metadata, in use, from another run."""

import json
import shutil
from pathlib import Path

import numpy as np
import soundfile

import foveal
from tests.support.command_line import predictions, refuse, succeed, table_rows, train_run
from tests.support.small_texts import write_tones

SMALL = (
    "data.sample_rate=8000",
    "data.mel_bins=20",
    "data.valid_fraction=0.2",
    "data.test_fraction=0.2",
    "model.encoder.width=16",
    "model.encoder.layers=1",
    "schedule.warmup_steps=5",
)


def write_sounds(folder: str = "sounds") -> str:
    """The tones of `write_tones`, in a folder for each."""
    write_tones("tones")
    for number in range(24):
        place = Path(folder, ("low", "high")[number % 2])
        place.mkdir(parents=True, exist_ok=True)
        shutil.move(f"tones/{number}.wav", place)
    shutil.rmtree("tones")
    return folder


def test_a_folder_for_each_label() -> None:
    write_sounds()
    Path("sounds/low/text.wav").write_text("no sound")
    soundfile.write("sounds/high/silent.wav", np.zeros(800), 8000)
    result = train_run("sounds", *SMALL, run="run", steps=60)
    assert result["accuracy"] == 1
    assert {"macro_f1", "macro_f1_interval", "loss"} <= result.keys()
    config = foveal.load("run").config
    assert (config.task.name, config.model.encoder.kind) == ("audio-classification", "convolution")
    skipped = [json.loads(line)["location"] for line in Path("run/skipped.jsonl").read_text().splitlines()]
    assert sorted(Path(place).name for place in skipped) == ["silent.wav", "text.wav"]
    (one,) = predictions("run", "sounds/high/1.wav")
    assert one["output"] == "high"
    told = succeed("predict", "run", "sounds")
    assert "skipped" in told.err
    rows = table_rows(told.out)
    for row in rows:
        label = row["file_name"].split("/")[0]
        assert row["answer"] == (label if row["answer"] else "")
        assert bool(row["answer"]) != bool(row["reason"])
    assert sum(bool(row["answer"]) for row in rows) == 24
    assert "high" in succeed("inspect", "run", "confusion").out
    assert json.loads(succeed("evaluate", "run", "sounds", "--json").out)["accuracy"] == 1


def test_a_table_with_labels_and_parts() -> None:
    write_tones("tones")
    table = Path("tones/metadata.csv").read_text()
    Path("tones/metadata.csv").write_text(table.replace("file_name,text", "file_name,label"))
    assert train_run("tones", *SMALL, run="table", steps=2)["split"] == "test"
    assert foveal.load("table").config.task.name == "audio-classification"
    Path("tones/metadata.csv").write_text(table)
    train_run("tones", "--task", "text-classification", "data.label=text", *SMALL, run="named", steps=2)
    assert foveal.load("named").config.task.name == "audio-classification"
    shutil.rmtree("tones")
    write_sounds("parts/train")
    shutil.copytree("parts/train", "parts/test")
    assert train_run("parts", *SMALL[:2], *SMALL[4:], run="parts-run", steps=2)["split"] == "test"
    assert (
        json.loads(Path("parts-run/run.json").read_text())["data"]["facts"]["parts"]["test"]["examples"] == 24
    )


def test_what_has_learnt_to_write_lends_its_ears() -> None:
    write_tones("tones")
    ears = (
        "model.encoder.layers=2",
        "model.encoder.width=16",
        "model.width=16",
        "data.sample_rate=8000",
        "data.mel_bins=20",
    )
    train_run("tones", *ears, run="heard", steps=2)
    told = succeed(
        "train",
        "tones",
        "--task",
        "audio-classification",
        "data.label=text",
        "--from",
        "heard",
        "--run",
        "run",
        "--budget",
        "2steps",
    )
    assert "the encoder of heard; the head is new" in told.err
    assert foveal.load("run").processor.source == foveal.load("heard").processor.source


def test_what_can_not_be_learnt() -> None:
    write_sounds()
    shutil.rmtree("sounds/low")
    line = refuse("train", "sounds", "--task", "audio-classification", *SMALL)
    assert "all of the" in line
    assert "at least two classes are needed" in line
    assert "not a folder of recordings" in refuse(
        "train", "text.txt", "--task", "audio-classification", *SMALL
    )
