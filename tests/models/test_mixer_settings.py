"""Sections of mixers: those that a stack names, complete; what nobody reads is refused or dropped."""

import pytest

from foveal.config import ConfigError, ModelConfig, parse_overrides
from foveal.config.model import parse_pattern
from foveal.layers.mixers.attention_rnn import AttentionRNNSpec
from foveal.layers.mixers.self_attention import AttentionSpec
from foveal.models.mixer_settings import resolve_mixer_settings, samples_positions, settings_of
from foveal.tasks.config import load_config


def resolved(preset: str, *overrides: str) -> ModelConfig:
    return resolve_mixer_settings(
        load_config(preset, overrides).model, parse_overrides(overrides).get("model")
    )


def test_a_pattern() -> None:
    assert parse_pattern("attention+cross, lstm") == (("attention", "cross"), ("lstm",))
    assert ModelConfig(mixers="lstm,gru+lstm").mixer_names == ("lstm", "gru")


def test_sections_are_complete() -> None:
    config = resolved("translation", "model.cross.heads=2")
    attention = AttentionSpec.Settings().model_dump()
    assert config.part_tables == {"attention": attention, "cross": {"heads": 2}}
    assert config.encoder.part_tables == {"attention": attention}
    assert resolve_mixer_settings(config) == config
    assert ModelConfig.model_validate(config.model_dump()) == config


def test_a_section_of_a_preset_goes_with_its_mixer() -> None:
    assert resolved("attention", "model.mixers=rwkv").part_tables == {}
    assert "conv" not in resolved("conv", "model.mixers=lstm").part_tables


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "model.attention.heads=2",
            "model.attention is not read by model.mixers=lstm; read here: model.lstm",
        ),
        ("model.encoder.s5.blocks=2", "model.encoder.s5 is not read by model.encoder.mixers=lstm"),
        ("model.atention.heads=2", "unknown key 'model.atention'; did you mean 'model.attention'?"),
        ("model.encoder.lstmm.x=2", "unknown key 'model.encoder.lstmm'; did you mean 'model.encoder.lstm'?"),
        ("model.mixers=lstm,gruu", "model.mixers: unknown mixer 'gruu'; did you mean 'gru'?"),
        ("model.lstm=2", "unknown key 'model.lstm'"),
        ("model.widht=2", "unknown key 'model.widht'; did you mean 'model.width'?"),
    ],
)
def test_what_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        resolved("lstm", override)
    assert str(raised.value).startswith(message)


def test_facts_of_settings() -> None:
    assert not samples_positions(resolved("captioning"))
    assert samples_positions(resolved("captioning-hard-attention"))
    assert settings_of(resolved("attention", "model.attention.window=3"), AttentionSpec).window == 3
    with pytest.raises(ValueError, match="names no mixer of AttentionRNNSpec"):
        settings_of(ModelConfig(), AttentionRNNSpec)
