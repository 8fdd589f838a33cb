"""Measured series, labelled whole or step by step: from a file to a run that is resumed and used."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command_line import predictions, refuse, run_command, succeed, train_run
from tests.support.interrupted_command import act_at
from tests.support.small_series import RISING, SMALL, slopes, write_steps, write_ts


def train(data: str, *more: object, run: str = "run", steps: int = 60) -> dict[str, Any]:
    return train_run(data, *SMALL, *more, run=run, steps=steps)


def test_a_label_for_each_series() -> None:
    told = succeed("train", write_ts(), *SMALL, "--budget", "60steps", "--run", "run", "--json")
    result = json.loads(told.out)
    assert "series-classification: 2 (down, up) from 2 channels" in told.err
    assert "encoder 1 x gru, width 16; " in told.err
    assert result["split"] == "test"
    assert result["accuracy"] == result["macro_f1"] == 1.0
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again["loss"] == pytest.approx(result["loss"], rel=1e-5)
    other = json.loads(succeed("evaluate", "run", write_ts("more.ts", count=40, seed=1), "--json").out)
    assert (other["examples"], other["accuracy"]) == (40, 1.0)
    bare = [{"values": values.tolist()} for values, _ in slopes(6, seed=1)]
    Path("bare.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in bare))
    found = predictions("run", "bare.jsonl")
    assert [row["output"] for row in found] == 3 * ["up", "down"]
    assert [row["location"] for row in found] == [f"bare.jsonl, line {number}" for number in range(1, 7)]


def test_a_label_for_each_step() -> None:
    result = train(write_steps(), steps=150)
    assert {"accuracy", "macro_f1", "accuracy_interval", "worst", "by_length"} <= result.keys()
    assert result["accuracy"] > 0.9
    found = predictions("run", "signs.npz")
    lengths = np.load("signs.npz")["lengths"]
    assert [len(row["output"].split()) for row in found] == lengths.tolist()
    assert found[0]["source"] == "signs.npz, series 1"


@pytest.mark.slow
def test_stopped_and_resumed_it_ends_alike() -> None:
    data = write_ts()
    train(data, run="whole", steps=20)
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("train", data, *SMALL, "--budget", "20steps", "--run", "run")
    assert told.code == 130
    succeed("resume", "run")
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "whole")]
    assert weights[0] == weights[1]
    write_ts(seed=1)
    assert "has changed since run was made" in refuse("evaluate", "run")


@pytest.mark.slow
def test_a_test_file_and_a_head_on_new_series() -> None:
    data, test = write_ts(), write_ts("test.ts", count=20, seed=1)
    assert train(data, "--test", test, steps=4)["split"] == "test"
    facts = json.loads(Path("run/run.json").read_text())["data"]["facts"]["parts"]
    assert {part: found["examples"] for part, found in facts.items()} == {"train": 60, "test": 20}
    more = ("--from", "run", "--budget", "2steps", "--run", "second")
    assert "all weights of run" in succeed("train", test, *SMALL, *more).err


def test_bad_input() -> None:
    data, small = write_ts(), (*SMALL, "--budget", "2steps", "--run", "run")
    assert "one for each step is needed" in refuse("train", data, *small, "--task", "series-tagging")
    text = Path(data).read_text()
    Path("one.ts").write_text(text.replace(":down", ":up"))
    assert "at least two classes are needed" in refuse("train", "one.ts", *small)
    Path("header.ts").write_text(RISING)
    assert "header.ts: no usable row" in refuse("train", "header.ts", *small)
    wide = RISING + "".join(f"1,2:2,3:3,{number}:{('up', 'down')[number % 2]}\n" for number in range(9))
    Path("wide.ts").write_text(wide)
    line = refuse("train", data, *small, "--test", "wide.ts")
    assert "no rows for the test set (9 can't be used, the first: wide.ts, line 5: 3 channels, and" in line
    assert "data.test_fraction" not in line
    Path("holes.ts").write_text(text + "?,2:1,2:up\n1,2:1,2:left\n")
    told = succeed("train", "holes.ts", *small)
    assert "2 rows, all in run/skipped.jsonl" in told.err
    why = [json.loads(line)["reason"] for line in Path("run/skipped.jsonl").read_text().splitlines()]
    assert [reason.split(";")[0] for reason in why] == [
        "a value is missing or not finite",
        "its label 'left' is not among the header's",
    ]
    assert "wide.ts, line 5: 3 channels, and the model reads 2" in refuse("predict", "run", "wide.ts")
    assert "3 channels, and the model reads 2" in refuse("evaluate", "run", "wide.ts")
    line = refuse("train", "wide.ts", "--from", "run")
    assert "wide.ts: no rows to train on" in line
    assert "hold fewer of them out" not in line
    line = refuse("evaluate", "run", write_steps())
    assert "one for the whole series is needed; fix the file, or train with another --task" in line


MISFITS = {
    (
        "series-classification",
        "tagging",
    ): "needs an encoder of what it reads: take a preset of that task, or set model.encoder.kind=series",
    ("series-tagging", "lstm"): "model.encoder.kind=series",
    ("tagging", "series-classification"): "model.encoder.kind=text or words",
    ("speech-recognition", "text-classification"): "model.encoder.kind=pyramid or convolution",
    ("translation", "speech-recognition"): "model.encoder.kind=text",
    ("language-model", "series-tagging"): "task.name=language-model needs no encoder",
}


@pytest.mark.parametrize(("task", "preset"), MISFITS)
def test_an_encoder_of_something_else_is_refused(task: str, preset: str) -> None:
    assert MISFITS[task, preset] in refuse("train", "text.txt", "--task", task, "--model", preset)
