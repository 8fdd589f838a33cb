"""Four ways to fine-tune, compared: each is trained once, whatever comes between, and measured."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import foveal
from foveal.studies.trials.process import TrialEnd, train_in_process
from tests.support.command_line import refuse, run_command, succeed
from tests.support.labeled_images import train, write_images
from tests.support.reviews import SMALL as WORDS
from tests.support.study_trainings import TRAIN_IN_PROCESS, train_here

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
@pytest.mark.usefixtures("first", "in_this_process")
def test_from_one_command_to_a_report() -> None:
    result: dict[str, Any] = json.loads(succeed("compare-finetuning", *GIVEN, "ways", "--json").out)
    assert list(result["ways"]) == WAYS
    assert (result["images"], result["classes"], result["advice"]) == (33, 2, "head")
    assert set(result["neighbors"]) == {"features", "pixels"}
    for way in result["ways"].values():
        assert (way["steps"], way["split"]) == (3, "test")
    again, last = json.loads(succeed("evaluate", "ways/all", "--json").out), result["ways"]["all"]
    assert [again["accuracy"], again["loss"]] == [last["accuracy"], last["loss"]]
    configs = {way: foveal.load(f"ways/{way}").config for way in WAYS}
    frozen = {way: config.training.freeze for way, config in configs.items()}
    assert frozen == dict(zip(WAYS, ("encoder", "below-last-block", "norms", "none"), strict=True))
    rates = [config.optimizer.lr for config in configs.values()]
    first = foveal.load("first").config.optimizer.lr
    assert rates[:3] == pytest.approx([0.1 * first] * 3)
    assert rates[3] == pytest.approx(0.1 * 8 / 128)  # the default for so few images: batches of 8
    for name in ("report.html", "report.json", "report.png"):
        assert Path("ways", name).exists()
    assert json.loads(Path("ways/report.json").read_text())["ways"] == result["ways"]
    kept, table = weights("ways"), succeed("compare-finetuning", *GIVEN, "ways")
    assert weights("ways") == kept
    assert [line.split()[0] for line in table.out.splitlines()[2:7]] == ["way", *WAYS]
    assert "33 training images, 16 per class: few" in table.out
    assert "refuted if" in table.out
    assert "ways was created with other settings" in refuse(
        "compare-finetuning", *GIVEN, "ways", "optimizer.lr=1"
    )
    _stopped_and_gone_on(kept)


def _stopped_and_gone_on(whole: dict[str, bytes]) -> None:
    """A stop in the second way: it says how to go on, and the end is that of one that was not stopped."""

    def stopped(path: Path, arguments: Any, signals: Any, watch: Any) -> TrialEnd:
        if path.name == "last-block":
            os.kill(os.getpid(), signal.SIGINT)
        return train_here(path, arguments, signals, watch)

    with patch(TRAIN_IN_PROCESS, stopped):
        told = run_command("compare-finetuning", *GIVEN, "parts")
    assert told.code == 130
    command = (
        "foveal compare-finetuning squares data.valid_fraction=0.2 data.test_fraction=0.2 --from first "
        "--run parts --budget 3steps"
    )
    assert told.last.endswith(f"finished runs are kept; go on with: {command}")
    head = Path("parts/head/model.safetensors").stat().st_mtime_ns
    succeed(*command.split()[1:])
    assert Path("parts/head/model.safetensors").stat().st_mtime_ns == head
    assert weights("parts") == whole


@pytest.mark.slow
@pytest.mark.usefixtures("first")
def test_from_python_in_processes_of_their_own_and_a_way_that_fails() -> None:
    def failing(path: Path, arguments: Any, signals: Any, watch: Any) -> TrialEnd:
        if path.name == "scratch":
            arguments = (*arguments, "--device=none")
        return train_in_process(path, arguments, signals, watch)

    settings = {"data.valid_fraction": 0.2, "data.test_fraction": 0.2}
    with patch(TRAIN_IN_PROCESS, failing):
        result = foveal.compare_finetuning(
            "squares", "first", budget="2steps", run="ways", settings=settings, quiet=True
        )
    assert [*result.ways] == WAYS[:3]
    assert "--device" in result.errors["scratch"]
    assert json.loads(Path("ways/report.json").read_text())["errors"] == result.errors


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
