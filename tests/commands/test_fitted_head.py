"""A head in closed form: of fixed convolutions, of visual features, and before training goes on."""

import json

import pytest

import foveal
from tests.support import labeled_images, small_series
from tests.support.command_line import refuse, succeed, train_run
from tests.support.saved_weights import saved_weights
from tests.support.small_texts import write_labels


def test_a_linear_classifier_of_fixed_convolutions_needs_no_step() -> None:
    small_series.write_ts()
    told = succeed("train", "slopes.ts", "--model", "minirocket", "--run", "run", "--json")
    assert json.loads(told.out)["steps"] == 0
    assert json.loads(told.out)["accuracy"] == 1.0
    assert "fitted at once, no training steps" in told.err
    assert "the head, at once, from all training rows; there are no training steps" in told.err
    assert foveal.load("run").config.training.budget == "0steps"
    assert json.loads(succeed("evaluate", "run", "--json").out)["accuracy"] == 1.0
    assert succeed("predict", "run", "slopes.ts")
    assert succeed("inspect", "run", "confusion", "--out", "confusion.png")
    assert "finished after 0 steps" in refuse("resume", "run")


def test_the_fit_is_told_in_place_of_a_step() -> None:
    small_series.write_ts()
    told = succeed("train", "slopes.ts", "--model", "minirocket", "--run", "run").err
    assert "fit    features of " in told
    assert " of memory; no training steps" in told
    assert "first loss" not in told
    more = succeed("train", "slopes.ts", "--model", "minirocket", "--budget", "2steps", "--run", "more").err
    (first_loss,) = (line for line in more.splitlines() if line.startswith("first loss"))
    assert first_loss.endswith("measured"), "the fitted head's loss is not that of chance"
    assert "ms a step" in more


def test_few_texts_get_ngrams() -> None:
    write_labels()
    told = succeed("train", "labels.csv", "--run", "run", "--json")
    assert json.loads(told.out)["steps"] == 0
    assert "texts are few: n-grams of characters" in told.err
    assert "model  text-ngrams: encoder 30000 n-grams of up to 5 tokens" in told.err
    assert succeed("predict", "run", "labels.csv", "--top", "2")
    assert succeed("evaluate", "run")


def test_the_seed_decides_and_the_whole_run_is_stored() -> None:
    small_series.write_ts()
    for run, seed in (("first", 0), ("again", 0), ("other", 1)):
        arguments = ("slopes.ts", "--model", "minirocket", f"training.seed={seed}", "--run", run)
        succeed("train", *arguments)
    first, again, other = map(saved_weights, ("first", "again", "other"))
    assert all(first[name].equal(again[name]) for name in first)
    assert not first["encoder.thresholds"].equal(other["encoder.thresholds"])


def test_training_goes_on_from_the_fitted_head() -> None:
    labeled_images.write_images()
    settings = ("model.head_fit=ridge", "data.image.size=12", "optimizer.lr=1e-4")
    train_run("squares", "--model", "hog", *settings, run="run", steps=2)
    start = saved_weights("run", "inputs/start.safetensors")
    assert float(start["head.projection.weight"].abs().sum()) > 0
    assert not start["head.projection.weight"].equal(saved_weights("run")["head.projection.weight"])


def test_a_series_of_labels_has_no_head_in_closed_form() -> None:
    small_series.write_ts()
    line = refuse("train", "slopes.ts", "--task", "series-tagging", "model.head_fit=ridge")
    assert "model.head_fit" in line


@pytest.mark.parametrize("budget", ["0s", "0epochs", "0.0"])
def test_only_no_steps_is_an_empty_budget(budget: str) -> None:
    small_series.write_ts()
    assert "expected an amount above 0" in refuse("train", "slopes.ts", "--budget", budget)
