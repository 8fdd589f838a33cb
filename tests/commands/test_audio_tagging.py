"""A label for each frame of a recording, from the command line: train, go on, predict, evaluate."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

import foveal
from tests.support.command_line import predictions, refuse, succeed, train_run
from tests.support.killed_runs import check_killed_run

RATE, HOP, WINDOW = 8000, 80, 200
SMALL = (
    f"data.sample_rate={RATE}",
    "data.mel_bins=20",
    "data.valid_fraction=0.2",
    "data.test_fraction=0.2",
    "data.batch_tokens=600",
    "model.encoder.layers=1",
    "model.encoder.width=16",
    "schedule.warmup_steps=5",
    "training.evaluate_every=20",
)
ENCODERS = {
    "convolution": (),
    "pyramid": ("model.encoder.kind=pyramid", "model.encoder.layers=2"),
}


def write_recording(path: Path, number: int) -> list[str]:
    """Write a tone, then a noise, or the other way around; return the label of each frame by its center."""
    chance = np.random.default_rng(number)
    half = HOP * int(chance.integers(8, 14))
    tone = 0.3 * np.sin(2 * np.pi * 440 / RATE * np.arange(half))
    noise = chance.normal(0, 0.2, half)
    first = number % 2
    soundfile.write(path, np.concatenate([(tone, noise)[first], (noise, tone)[first]]), RATE)
    count = 1 + (2 * half - WINDOW) // HOP
    centers = np.arange(count) * HOP + WINDOW // 2
    names = ("tone", "noise")
    return [names[first] if center < half else names[1 - first] for center in centers]


def write_recordings(folder: str, count: int = 30) -> dict[str, list[str]]:
    """Write recordings with a table that labels their frames; return the labels by the names of the files."""
    Path(folder).mkdir()
    labels = {
        f"{number}.wav": write_recording(Path(folder, f"{number}.wav"), number) for number in range(count)
    }
    rows = (json.dumps({"file_name": name, "labels": " ".join(tags)}) for name, tags in labels.items())
    Path(folder, "metadata.jsonl").write_text("\n".join(rows))
    return labels


@pytest.mark.parametrize("encoder", ENCODERS)
def test_frames_are_labeled(encoder: str) -> None:
    labels = write_recordings("mixed")
    result = train_run("mixed", *SMALL, *ENCODERS[encoder], run="run", steps=80)
    assert foveal.load("run").config.task.name == "audio-tagging"
    assert result["accuracy"] > 0.9
    assert {"macro_f1", "accuracy_interval"} <= result.keys()
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again["accuracy"] == result["accuracy"]
    (one,) = predictions("run", "mixed/3.wav")
    found, right = one["output"].split(), labels["3.wav"]
    assert len(found) == len(right)
    assert np.mean([a == b for a, b in zip(found, right, strict=True)]) > 0.8
    assert "noise" in succeed("inspect", "run", "confusion").out


@pytest.mark.slow
def test_a_killed_run_ends_as_if_it_had_not_been(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_killed_run(here, monkeypatch, lambda: write_recordings("mixed"), "mixed", SMALL)


def test_labels_that_do_not_fit_are_named() -> None:
    write_recordings("mixed")
    table = Path("mixed/metadata.jsonl")
    table.write_text(table.read_text().replace('"labels": "', '"labels": "noise '))
    line = refuse("train", "mixed", "--task", "audio-tagging", *SMALL)
    assert "no rows to train on" in line
    assert "frames; give each frame one" in line
    assert "hold fewer" not in line


def test_more_bands_than_frequencies_are_refused_before_anything_is_read() -> None:
    Path("mixed").mkdir()
    line = refuse("train", "mixed", "--task", "audio-tagging", *SMALL, "data.mel_bins=80")
    assert "data.mel_bins=80 is too many for data.sample_rate=8000" in line
    assert "lower data.mel_bins, or raise data.sample_rate" in line
