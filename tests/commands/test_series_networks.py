"""Networks of 1D convolutions from a file of series to a run that is resumed and used."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.store.sealed import open_tensors
from tests.support.command_line import predictions, run_command, succeed, train_run
from tests.support.interrupted_command import act_at
from tests.support.small_series import slopes, write_ts

PRESETS = ("series-resnet", "series-inception")
FAST = ("data.valid_fraction=0.2", "data.test_fraction=0.2", "training.evaluate_every=10")


def train(data: str, preset: str, *more: object, run: str = "run", steps: int) -> dict[str, Any]:
    return train_run(data, "--model", preset, *FAST, *more, run=run, steps=steps)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_train_evaluate_predict_inspect(preset: str) -> None:
    """Of series of 5 to 11 steps, fewer than the longest kernel, and different in a batch."""
    result = train(write_ts(), preset, steps=30)
    assert result["accuracy"] == 1.0
    facts = open_tensors(Path("run/model.safetensors").read_bytes(), "")[1]
    assert (facts["which"], facts["step"]) == ("last", 30)
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again["loss"] == pytest.approx(result["loss"], rel=1e-5)
    bare = [{"values": values.tolist()} for values, _ in slopes(6, seed=1)]
    Path("bare.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in bare))
    assert [row["output"] for row in predictions("run", "bare.jsonl")] == 3 * ["up", "down"]
    for view in ("activations", "confusion"):
        succeed("inspect", "run", view, "--out", f"{view}.png")
        assert Path(f"{view}.png").read_bytes().startswith(b"\x89PNG")
    assert Path("run/curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_label_for_each_step() -> None:
    """Whether this value and the next are above 0: a window of two steps, one of them ahead."""
    chance = np.random.default_rng(0)
    rows = [chance.normal(size=chance.integers(4, 10)) for _ in range(120)]
    after = [np.append(row[1:], -1) for row in rows]
    labels = [
        np.where((row > 0) & (later > 0), "both", "not") for row, later in zip(rows, after, strict=True)
    ]
    lengths = [len(row) for row in rows]
    np.savez("both.npz", x=np.concatenate(rows)[:, None], y=np.concatenate(labels), lengths=lengths)
    network = ("model.encoder.kind=series-network", "model.encoder.network=resnet-1d")
    result = train("both.npz", "series-tagging", *network, "data.batch_tokens=200", steps=60)
    assert result["accuracy"] > 0.9


@pytest.mark.slow
def test_stopped_and_resumed_with_augmentation_it_ends_alike() -> None:
    data = write_ts()
    changes = ("data.series.jitter=0.2", "data.series.scaling=0.2", "training.evaluate_every=3")
    train(data, "series-resnet", *changes, run="whole", steps=8)
    with act_at("after a sample", lambda: os.kill(os.getpid(), signal.SIGINT)):
        options = ("--model", "series-resnet", *FAST, *changes, "--budget", "8steps", "--run", "run")
        told = run_command("train", data, *options)
    assert told.code == 130
    succeed("resume", "run")
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "whole")]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_series_by_themselves_are_so_in_predictions() -> None:
    """A sensor with another offset and scale gets the same answers, if series are standardized alone."""
    train(write_ts(), "series-resnet", "data.series.standardize=series", steps=20)
    moved = [{"values": (values * 100 - 7000).tolist()} for values, _ in slopes(6, seed=1)]
    Path("moved.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in moved))
    assert [row["output"] for row in predictions("run", "moved.jsonl")] == 3 * ["up", "down"]
