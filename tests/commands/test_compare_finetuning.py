"""Four ways to train on, compared: each is trained once, whatever comes between, and measured."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import foveal
from tests.support.command_line import refuse, run_command, succeed
from tests.support.interrupted_command import INTERRUPT_POINTS, act_at
from tests.support.labeled_images import train, write_images
from tests.support.reviews import SMALL as WORDS

WAYS = ["head", "last-block", "all", "scratch"]
GIVEN = (
    "squares",
    "--from",
    "first",
    "data.valid_fraction=0.2",
    "data.test_fraction=0.2",
    "--budget",
    "3steps",
    "--run",
)


@pytest.fixture
def first(here: Path) -> None:
    """A run that tells blue from red; and images of other names."""
    train(write_images(), run="first", steps=4)
    for old, new in (("blue", "sea"), ("red", "rose")):
        Path("squares", old).rename(Path("squares", new))


def weights(folder: str) -> dict[str, bytes]:
    return {way: Path(folder, way, "model.safetensors").read_bytes() for way in WAYS}


@pytest.mark.slow
@pytest.mark.usefixtures("first")
def test_from_one_command_to_a_table() -> None:
    told = succeed("compare-finetuning", *GIVEN, "ways", "--json")
    result: dict[str, Any] = json.loads(told.out)
    assert list(result["ways"]) == WAYS
    assert told.err.count("0.693 nats measured; ln 2 = 0.693 expected") >= 3  # the new heads are zero
    assert (result["images"], result["classes"], result["advice"]) == (33, 2, "head")
    assert set(result["neighbors"]) == {"features", "pixels"}
    for one in result["ways"].values():
        assert (one["steps"], one["split"]) == (3, "test")
    again, last = json.loads(succeed("evaluate", "ways/all", "--json").out), result["ways"]["all"]
    assert [again["accuracy"], again["loss"]] == [last["accuracy"], last["loss"]]
    frozen = {way: foveal.load(f"ways/{way}").config.training.freeze for way in WAYS}
    assert frozen == dict(zip(WAYS, ("encoder", "below-last-block", "norms", "none"), strict=True))
    rates = [foveal.load(f"ways/{way}").config.optimizer.lr for way in WAYS]
    first = foveal.load("first").config.optimizer.lr
    assert rates[:3] == pytest.approx([0.1 * first] * 3)
    assert rates[3] == pytest.approx(0.1 * 8 / 128)  # the default for so few images: batches of 8
    kept, table = weights("ways"), succeed("compare-finetuning", *GIVEN, "ways")
    assert weights("ways") == kept
    assert table.err.count("already finished") == 4
    assert [line.split()[0] for line in table.out.splitlines()[:5]] == ["way", *WAYS]
    assert "33 training images, 16 per class: few" in table.out
    assert "refuted if" in table.out
    assert "ways was created with other settings" in refuse(
        "compare-finetuning", *GIVEN, "ways", "optimizer.lr=1"
    )
    _stopped_and_gone_on(kept)


def _stopped_and_gone_on(whole: dict[str, bytes]) -> None:
    """A stop in the second way: it says how to go on, and the end is that of one that was not stopped."""
    second = {"second": ("foveal.training.trainer:train_step", 5)}
    with patch.dict(INTERRUPT_POINTS, second), act_at("second", lambda: os.kill(os.getpid(), signal.SIGINT)):
        told = run_command("compare-finetuning", *GIVEN, "parts")
    assert told.code == 130
    assert told.last.endswith(
        "finished runs are kept; go on with: foveal compare-finetuning squares data.valid_fraction=0.2 "
        "data.test_fraction=0.2 --from first --budget 3steps --run parts"
    )
    assert sorted(path.name for path in Path("parts").iterdir()) == [
        "compare-finetuning.json",
        "head",
        "last-block",
    ]
    head = Path("parts/head/model.safetensors").stat().st_mtime_ns
    succeed(*told.last.split("go on with: foveal ")[1].split())
    assert Path("parts/head/model.safetensors").stat().st_mtime_ns == head
    assert weights("parts") == whole


@pytest.mark.usefixtures("first")
def test_what_can_not_be_compared() -> None:
    shutil.copytree("squares", "ways")
    assert "ways exists" in refuse("compare-finetuning", *GIVEN, "ways")
    assert "budget 'long'" in refuse("compare-finetuning", *GIVEN[:-3], "--budget", "long", "--run", "more")
    why = refuse(
        "compare-finetuning",
        "squares",
        "--from",
        "first",
        "data.valid_fraction=0",
        "data.test_fraction=0",
        "--run",
        "more",
    )
    assert "no held-out images" in why
    succeed("train", "text.txt", "--task", "masked-lm", *WORDS, "--budget", "2steps", "--run", "words")
    assert "a run of task masked-lm, and only runs on images" in refuse(
        "compare-finetuning", "squares", "--from", "words", "--run", "more"
    )
    assert not Path("more").exists()
