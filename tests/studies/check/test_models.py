"""The models of our presets keep every law: no false alarm."""

import pytest

from foveal.config import Config, preset_names
from foveal.studies.check.model import check_model
from foveal.studies.check.smaller import MAX_PARAMETERS, smaller_config
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of

QUICK = {
    "min-char-rnn": (),
    "attention": ("model.width=16", "model.layers=1"),
    "translation": ("model.width=16", "model.layers=1", "model.encoder.width=16", "model.encoder.layers=1"),
    "tagging": ("model.encoder.width=16", "model.encoder.embedding_width=16", "model.encoder.layers=1"),
    "series-classification": ("model.encoder.width=16", "model.encoder.layers=1"),
    "minirocket": (),
}
"""Presets that are checked with every change, with settings that make them small."""


def broken_laws(config: Config) -> list[str]:
    results = check_model(smaller_config(config).config)
    return [f"{each.part}: {each.law}: {each.in_words}" for each in results if each.verdict == "BROKEN"]


@pytest.mark.parametrize("preset", QUICK)
def test_a_small_model_keeps_every_law(preset: str) -> None:
    assert not broken_laws(load_config(preset, QUICK[preset]))


@pytest.mark.slow
@pytest.mark.parametrize("preset", preset_names())
def test_the_model_of_a_preset_keeps_every_law(preset: str) -> None:
    assert not broken_laws(load_config(preset))


def test_a_large_model_is_made_smaller_and_says_so() -> None:
    config, changes = smaller_config(load_config("gpt3"))
    assert sum(weight.numel() for weight in task_of(config).example_model().parameters()) < MAX_PARAMETERS
    assert "model.layers=2 (of 96)" in changes
    assert not smaller_config(load_config("gru")).changes


def test_a_window_longer_than_the_texts_is_made_short() -> None:
    (change,) = smaller_config(load_config("attention", ["model.attention.window=256"])).changes
    assert change == "model.attention.window=3 (of 256)"
