"""Widths that make models equal: what is reached, and what is not possible."""

import pytest

from foveal.core.errors import UserError
from foveal.data.text.tokenizer_base import VocabularySize
from foveal.studies.compare.candidates import Candidate
from foveal.studies.compare.widths import Size, count_parameters, solve_width
from foveal.tasks.config import load_config

VOCABULARY = VocabularySize(65)
PARAMETERS = Size("parameters", "--parameters", lambda config: count_parameters(config, VOCABULARY))


def candidate(preset: str, *settings: str) -> Candidate:
    return Candidate(preset, preset, load_config(preset, settings))


def solved(preset: str, target: int, *settings: str) -> Candidate:
    return solve_width(candidate(preset, *settings), target, PARAMETERS, VOCABULARY)


@pytest.mark.parametrize("preset", ["lstm", "gru", "attention", "mamba", "rwkv", "s5", "conv", "moe"])
@pytest.mark.parametrize("target", [1_000_000, pytest.param(3_000_000, marks=pytest.mark.slow)])
def test_parameters_are_within_two_percent(preset, target):
    config = solved(preset, target).config
    assert count_parameters(config, VOCABULARY) == pytest.approx(target, rel=0.02)
    before = load_config(preset)
    solved_for = {name: getattr(config.model, name) for name in ("width", "expansion")}
    assert config == before.model_copy(update={"model": before.model.model_copy(update=solved_for)})
    assert solved_for["expansion"] == pytest.approx(before.model.expansion, rel=0.35)


def test_widths_with_fast_kernels_are_preferred():
    assert solved("lstm", 2_000_000).config.model.width % 8 == 0


def test_a_model_that_fits_stays_as_it_is():
    preset = candidate("attention")
    assert solve_width(preset, PARAMETERS.measure(preset.config), PARAMETERS, VOCABULARY) is preset


def test_a_count_between_two_widths_is_refused_with_the_nearest():
    settings = (  # widths are multiples of 64
        "model.attention.heads=64",
        "model.width=128",
        "model.feedforward=none",
        "model.positions.kind=none",
    )
    with pytest.raises(UserError) as error:
        solved("attention", 300_000, *settings)
    nearest = count_parameters(load_config("attention", settings), VOCABULARY)
    assert f"the nearest that is possible is {nearest:,} (with model.width=128)" in str(error.value)
    assert f"--parameters {nearest}" in str(error.value)


def test_fewer_parameters_than_any_model_has_are_refused():
    with pytest.raises(UserError, match=r"lstm: can't be matched to 100 .* .with model.width=1.;"):
        solved("lstm", 100)
