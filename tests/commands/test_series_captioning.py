"""A text for each measured series, from the command line: train, go on, write, evaluate."""

import json
from pathlib import Path

import numpy as np
import pytest

import foveal
from tests.support.command_line import predictions, refuse, succeed, train_run
from tests.support.killed_runs import check_killed_run
from tests.support.told_series import SMALL, write_series


@pytest.mark.slow
def test_series_are_told() -> None:
    texts = write_series("moves.jsonl")
    result = train_run("moves.jsonl", *SMALL, run="run", steps=120)
    loaded = foveal.load("run")
    assert loaded.config.task.name == "series-captioning"
    assert result["exact"] > 0.8
    assert {"chrf", "cider"} <= result.keys()
    assert json.loads(succeed("evaluate", "run", "--json").out)["exact"] == result["exact"]
    found = predictions("run", "moves.jsonl")
    assert np.mean([one["output"] == texts[one["source"]] for one in found]) > 0.8
    written = succeed("generate", "run", "--input", "moves.jsonl").out.splitlines()
    assert written == [one["output"] for one in found]
    assert "reads series" in refuse("generate", "run", "--input", "moves.jsonl", "--attention", "a.png")


@pytest.mark.slow
def test_a_killed_run_ends_as_if_it_had_not_been(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_killed_run(here, monkeypatch, lambda: write_series("moves.jsonl"), "moves.jsonl", SMALL)


def test_texts_that_are_missing_are_said() -> None:
    Path("bare.jsonl").write_text('{"values": [[1], [2]], "label": "a"}\n')
    line = refuse("train", "bare.jsonl", "--task", "series-captioning", *SMALL)
    assert "line 1: has no 'text', and a text for the whole series is needed" in line
