"""`foveal resume RUN --budget`, and `--log` of train and resume."""

import csv
from pathlib import Path

import pytest

import foveal
from tests.support.command_line import TINY_MODEL, refuse, succeed
from tests.support.logged_numbers import from_csv, metrics_of_run


@pytest.mark.slow
def test_a_finished_run_goes_on_with_a_larger_budget_and_more_loggers(run: Path) -> None:
    assert f"finished after 20 steps; to go on: foveal resume {run} --budget +10m" in refuse("resume", run)
    curves = (run / "curves.png").read_bytes()
    done = succeed("resume", run, "--budget", "+2steps", "--log", "csv", "--json")
    assert "budget +2steps: 22 steps in place of 20; goes on at step 20; the learning rate falls" in done.err
    assert '"steps": 22' in done.out
    assert (run / "curves.png").read_bytes() != curves
    logged, own = from_csv(run), metrics_of_run(run)
    assert {name: pairs for name, pairs in logged.items() if not name.startswith("final/")} == own
    assert len(logged["final/loss"]) == 1
    refuse("resume", run)
    assert len(foveal.Run(run).resume("+1steps").metrics) > len(own["train/loss"]) + len(own["valid/loss"])
    assert from_csv(run)["train/loss"][-1][0] == 23, "a run keeps its loggers"


def test_train_takes_loggers_and_refuses_others_before_the_data_are_read() -> None:
    line = refuse("train", "text.txt", "--log", "board")
    assert "--log board: no such logger; did you mean 'tensorboard'?" in line
    succeed("train", "text.txt", *TINY_MODEL, "--budget", "2steps", "--run", "run", "--log", "csv")
    with Path("run/metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows if row["train/loss"]] == ["1", "2"]


def test_settings_of_a_run_can_not_be_changed() -> None:
    line = refuse("resume", "run", "training.slots=4")
    assert "training.slots=4: a run goes on with its own settings, in run/config.toml: leave this out" in line
