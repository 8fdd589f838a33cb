"""A number is not rounded, true is no number, and true and false have several words."""

import re

import pytest

from foveal.config import ConfigError
from foveal.tasks.config import load_config
from tests.support.command_line import refuse

TRUTH_VALUE = "true or false (or yes, no, on, off, 1, 0)"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("model.layers=true", "a whole number"),
        ("model.width=true", "a whole number"),
        ("data.context_length=64.5", "a whole number"),
        ("training.seed=1.9", "a whole number"),
        ("model.dropout=true", "a number"),
        ("model.tie_embeddings=2", TRUTH_VALUE),
        ("model.tie_embeddings=1.0", TRUTH_VALUE),
        ("model.tie_embeddings=ja", TRUTH_VALUE),
    ],
)
def test_settings_of_another_kind(setting: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"expected {re.escape(expected)}$"):
        load_config("attention", [setting])


@pytest.mark.parametrize("setting", ["model.tie_embeddings", "training.final_test", "data.shared_vocabulary"])
@pytest.mark.parametrize(
    ("word", "value"),
    [("yes", True), ("On", True), ("1", True), ("true", True), ("no", False), ("off", False), ("0", False)],
)
def test_words_for_true_and_false(setting: str, word: str, value: bool) -> None:
    section, name = setting.split(".")
    preset = "translation" if section == "data" else "attention"
    assert getattr(getattr(load_config(preset, [f"{setting}={word}"]), section), name) is value


@pytest.mark.parametrize("setting", ["optimizer.lr=1", "optimizer.lr=.5", "model.layers=2.0", "data.text=3"])
def test_what_is_of_the_kind_stays(setting: str) -> None:
    load_config("attention", [setting])


@pytest.mark.parametrize(
    "arguments",
    [
        ("generate", "run", "--tokens", "2.7"),
        ("generate", "run", "--seed", "1.9"),
        ("generate", "run", "--samples", "1.0"),
        ("generate", "run", "--beam", "1.5"),
        ("generate", "run", "--top-k", "1e1"),
        ("models", "describe", "lenet-5", "--classes", "9.5"),
        ("inspect", "run", "neighbors", "--nearest", "2.5"),
    ],
    ids=lambda arguments: arguments[-2],
)
def test_options_are_not_rounded(arguments: tuple[str, ...]) -> None:
    assert f'"{arguments[-1]}": expected a whole number' in refuse(*arguments)
