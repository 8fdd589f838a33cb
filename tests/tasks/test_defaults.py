"""Defaults by the size of the data: who chooses nothing gets them, and is told why."""

from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.tasks import configure, series_classification
from foveal.tasks.defaults import Defaults, DefaultsRequest
from foveal.tasks.series_classification import SeriesClassificationTask
from tests.support import small_series
from tests.support.command_line import succeed


@pytest.fixture(autouse=True)
def _series(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    small_series.write_ts()


def preset_of(*arguments: str) -> str:
    """Return the network or the mixers of the printed config."""
    lines = succeed("train", "slopes.ts", *arguments, "--print-config").out.splitlines()
    (name,) = (line.split('"')[1] for line in lines if line.startswith(("network = ", "mixers = ")))
    return name


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "minirocket"),
        (("--task", "series-classification"), "minirocket"),
        (("data.test_fraction=0.2", "training.seed=3"), "minirocket"),
        (("--model", "series-classification"), "gru"),
        (("--budget", "3steps"), "gru"),
        (("optimizer.lr=1e-3",), "gru"),
        (("model.encoder.width=16",), "gru"),
    ],
)
def test_who_chooses_a_part_of_the_model_or_of_training_gets_the_preset(
    arguments: tuple[str, ...], expected: str
) -> None:
    assert preset_of(*arguments) == expected


def test_the_line_says_why_and_how_to_undo() -> None:
    told = succeed("train", "slopes.ts", "--run", "run").err
    assert "series are few" in told
    assert "else --model series-classification" in told
    assert "curves " not in told, "there are no steps to draw"


def test_a_budget_is_told_what_the_default_would_be() -> None:
    told = succeed("train", "slopes.ts", "--run", "run", "--budget", "1steps").err
    assert "that is the default (minirocket) without a budget" in told
    assert "series-classification is trained" in told


@pytest.mark.parametrize("arguments", [(), ("--budget", "3steps")])
def test_many_series_get_learned_convolutions(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_classification, "MANY_SERIES", 5)
    assert preset_of(*arguments) == "inception-time"


def test_the_users_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_classification, "MANY_SERIES", 5)
    printed = succeed("train", "slopes.ts", "--budget", "3steps", "--print-config").out
    assert 'budget = "3steps"' in printed
    assert "batch_size = 64" in printed


def test_without_the_weights_training_goes_on_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, log: object) -> object:
        raise UserError(f"{name}: can't fetch")

    def defaults(task: object, request: DefaultsRequest) -> Defaults:
        if request.pretrained:
            return Defaults("minirocket", "few", weights="all-minilm-l6-v2")
        return Defaults("minirocket", "few")

    monkeypatch.setattr(configure, "published_run", refuse)
    monkeypatch.setattr(SeriesClassificationTask, "defaults", defaults)
    told = succeed("train", "slopes.ts", "--run", "first", "--quiet").err
    assert told.count("\n") == 1
    assert "all-minilm-l6-v2: can't fetch; training goes on without published weights" in told
    told = succeed("train", "slopes.ts", "--pretrained", "no", "--run", "second").err
    assert "can't fetch" not in told
