"""`foveal compare RUN RUN ...`: runs that exist, on equal rows; and refusals in one line."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import foveal
from foveal.studies.compare.by_position import PositionLosses, losses_by_position
from foveal.tasks.session import Session
from tests.support.command_line import refuse, succeed
from tests.support.compare_command import TINY, compared


def trained(run: str, *settings: str) -> str:
    succeed("train", *TINY, "--model", "lstm", "--budget", "6steps", "--run", run, *settings)
    return run


@pytest.mark.slow
def test_existing_runs_are_compared_on_the_same_rows(run: Path) -> None:
    shutil.copytree(run, "twin")
    result = compared(run, "twin", trained("short"), "--out", "report.png")
    assert [model["model"] for model in result["models"]] == ["run", "twin", "short"]
    verdicts = {(each["first"], each["second"]): each for each in result["differences"]}
    assert verdicts["run", "twin"]["verdict"] == "indistinguishable"
    assert verdicts["run", "twin"]["interval"] == [0, 0]
    assert verdicts["run", "short"]["verdict"] == "told apart"  # after 20 steps and after 6
    scored = foveal.load("short").evaluate()
    assert result["models"][2]["loss"] == pytest.approx(scored["loss"], rel=1e-4)
    assert Path("report.png").exists()
    Path("other").mkdir()  # of a study, say, that `runs/*` names as well
    told = foveal.compare([foveal.load("short"), "other", "twin"], quiet=True)
    assert told.comparison.best.name == "twin"


@pytest.mark.slow
def test_what_can_not_be_measured_is_told_and_the_rest_is_there(run: Path) -> None:
    shutil.copytree(run, "twin")

    def failing(session: Session, split: Any) -> PositionLosses:
        if session.run.path.name == "twin":
            raise MemoryError("too little")
        return losses_by_position(session, split)

    with patch("foveal.studies.compare.sequences.losses_by_position", failing):
        result = compared(run, "twin")
        printed = succeed("compare", run, "twin").out
    assert result["not_measured"] == {"twin by position": "MemoryError: too little"}
    assert "twin by position: MemoryError: too little" in " ".join(printed.split())
    assert [*result["by_position"]] == ["run"]
    assert {name: len(costs) for name, costs in result["by_length"].items()} == {"run": 3, "twin": 3}


@pytest.mark.slow
def test_runs_whose_rows_differ_are_refused(run: Path) -> None:
    other = trained("other", "data.context_length=32")
    assert "cut in another way than those of" in refuse("compare", run, other)
    Path("text.txt").write_text(Path("text.txt").read_text()[::-1])
    moved = trained("moved")
    assert "the split test is not that of" in refuse("compare", moved, run)


def test_options_of_trainings_are_refused_without_models(run: Path) -> None:
    for option, value in (("--budget", "9steps"), ("--seeds", "5"), ("--match", "time")):
        assert f"{option} is for models to train" in refuse("compare", run, run, option, value)
    assert "1 run to compare: name two or more" in refuse("compare", run)
    assert "no such run" in refuse("compare", run, "nowhere")


@pytest.mark.parametrize(
    ("data", "arguments", "words"),
    [
        ("text.txt", {}, r"1 run to compare: name two or more, or name models to train \(models\)$"),
        (
            ["run", "run"],
            {"seeds": 5},
            r"^seeds is for models to train: name them \(models\), or leave it out$",
        ),
        (["run", "run"], {"settings": {"optimizer.lr": 1}}, "^settings is for models to train"),
        ({"text": ["a", "b"]}, {}, r"^data: expected runs or their paths; name models to train on data"),
        ([1, 2], {}, r"^data: expected runs or their paths; name models to train on data"),
        ("text.txt", {"models": "lstm"}, "^models: 1 model; name two or more, with commas between$"),
    ],
)
def test_python_refuses_what_the_command_refuses(data: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(foveal.UserError, match=words):
        foveal.compare(data, **arguments)
