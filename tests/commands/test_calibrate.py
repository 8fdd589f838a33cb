"""`foveal calibrate`: other probabilities, the same labels."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import foveal
from tests.support.command_line import predictions, refuse, succeed
from tests.support.small_texts import SMALL, TAGS, sentences, write_tags

FILE = Path("run/calibration.json")


def write_noisy_labels(path: str = "labels.csv", count: int = 120) -> None:
    """Write labels of which a quarter are wrong, so that no model is always right."""
    chance = random.Random(0)
    rows = [(row, ("cat" in row) != (chance.random() < 0.25)) for row in sentences(count)]
    Path(path).write_text("text,label\n" + "".join(f"{row},{'yes' if cat else 'no'}\n" for row, cat in rows))


def train(data: str, *settings: str) -> None:
    fractions = ("data.valid_fraction=0.3", "data.test_fraction=0.2")
    succeed("train", data, *settings, *fractions, "--budget", "6steps", "--run", "run")


def scores(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeed("evaluate", "run", *arguments, "--json").out)
    return found


@pytest.mark.parametrize("kind", ["labels", "tags"])
def test_labels_stay_and_probabilities_change(kind: str) -> None:
    write_noisy_labels()
    write_tags()
    data, settings = ("labels.csv", SMALL) if kind == "labels" else ("tags.conllu", TAGS)
    train(data, *settings)
    before, raw = predictions("run", data), scores()
    assert "temperature" not in raw
    told = json.loads(succeed("calibrate", "run", "--json").out)
    assert told["loss_after"] < told["loss_before"]
    after, calibrated = predictions("run", data), scores()
    assert [row["output"] for row in after] == [row["output"] for row in before]
    assert [row["probability"] for row in after] != [row["probability"] for row in before]
    assert calibrated["accuracy"] == raw["accuracy"]
    assert calibrated["temperature"] == told["temperature"] != 1
    assert f"at temperature {told['temperature']:.4g}" in succeed("evaluate", "run").err
    assert f"at temperature {told['temperature']:.4g}" in succeed("predict", "run", data).err
    again = json.loads(succeed("calibrate", "run", "--json").out)
    assert again == told, "a second fit begins at temperature 1"
    assert foveal.load("run").session.temperature == told["temperature"]


def test_a_calibration_of_other_weights_is_not_used() -> None:
    write_noisy_labels()
    train("labels.csv", *SMALL)
    assert "trained on rows of these data" in refuse("calibrate", "run", "labels.csv")
    succeed("calibrate", "run")
    shutil.move("run", "first")
    train("labels.csv", *SMALL, "training.seed=1")
    shutil.copy("first/calibration.json", FILE)
    told = succeed("evaluate", "run", "--json")
    assert "temperature" not in json.loads(told.out)
    assert "of earlier weights, so it is not used; fit it again: foveal calibrate run" in told.err
    FILE.write_text(FILE.read_text().replace('"temperature": ', '"temperature": 1'))
    assert "run/calibration.json: damaged or edited" in refuse("evaluate", "run")


def test_other_labeled_data() -> None:
    write_noisy_labels()
    succeed("train", "labels.csv", *SMALL, "--test", "labels.csv", "--budget", "3steps", "--run", "run")
    assert "trained without validation data: name labeled data" in refuse("calibrate", "run")
    Path("more.csv").write_text(Path("labels.csv").read_text().replace("text,label", "review,mood"))
    told = succeed("calibrate", "run", "more.csv", "data.text=review", "data.label=mood")
    assert "from 120 labels" in told.err
    Path("few.csv").write_text(f"text,label\n{'the cat,yes'}\nthe cat,no\n")
    assert "only 2 labels" in succeed("calibrate", "run", "few.csv").err


def test_what_cannot_be_calibrated(finished: Path) -> None:
    assert "has no classes to calibrate" in refuse("calibrate", finished)
    write_noisy_labels()
    train("labels.csv", *SMALL)
    right = [f"{row['source']},{row['output']}\n" for row in predictions("run", "labels.csv")]
    Path("right.csv").write_text(f"text,label\n{''.join(right)}")
    assert "all 120 labels are right" in refuse("calibrate", "run", "right.csv")
    assert not FILE.exists()
