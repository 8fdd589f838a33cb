"""Presets can be compared: those of one mixer each have about a million parameters."""

import pytest
import torch

from foveal.config import load_config, preset_names
from foveal.models.language import language_model
from foveal.models.stack import MIXERS

COMPARED = {*MIXERS, "moe"}


@pytest.mark.parametrize("name", sorted(COMPARED))
def test_about_a_million_parameters(name):
    config = load_config(name)
    assert config.model.mixers == {"moe": "attention"}.get(name, name)
    with torch.device("meta"):
        model = language_model(config.model, 65, config.data.context)
    assert 1.0e6 <= sum(parameter.numel() for parameter in model.parameters()) <= 1.1e6


def test_the_others_are_few():
    models = {name for name in preset_names() if load_config(name).task.name == "language"}
    assert models - COMPARED == {"demo", "min-char-rnn"}
