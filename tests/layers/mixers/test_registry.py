"""Mixers by name: a new one is one class that registers itself, and no other file knows its name."""

from typing import Any

import pytest
import torch
from pydantic import Field

from foveal.config import ConfigError, ModelConfig
from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, StackFacts, mixer_specs, register_mixer
from foveal.models.decoder import decoder, language_model
from foveal.models.mixer_settings import resolve_mixer_settings
from foveal.tasks.config import from_tables
from tests.support.mixer_rows import READING, ROWS, missing_rows
from tests.support.own_cell import MinimalGated


class GatedSettings(StrictModel):
    learned_initial_state: bool = False
    groups: int = Field(default=1, gt=0)


@pytest.fixture
def minimal_gated(own_registries: None) -> str:
    """Register a mixer for one test."""

    @register_mixer("minimal-gated")
    class GatedSpec(MixerSpec[GatedSettings]):
        Settings = GatedSettings

        def make(self, place: MixerPlace[GatedSettings]) -> Recurrent:
            return Recurrent(MinimalGated(place.d_in, place.width), place.settings.learned_initial_state)

        def check(self, settings: GatedSettings, stack: StackFacts) -> None:
            if stack.width % settings.groups:
                raise ValueError(f"{stack.section}.{self.section}.groups={settings.groups} does not fit")

    return "minimal-gated"


def test_a_new_mixer_is_named_configured_and_made(minimal_gated: str) -> None:
    tables = {"mixers": f"{minimal_gated},lstm", "width": 8, "minimal_gated": {"learned_initial_state": True}}
    config = resolve_mixer_settings(from_tables({"model": tables}).model, tables)
    assert config.part_tables == {
        "minimal_gated": {"learned_initial_state": True, "groups": 1},
        "lstm": {"learned_initial_state": False},
    }
    model = language_model(config, 5, 16)
    first: Any
    second: Any
    first, second = (block.mixer for block in model.stack.blocks)
    assert isinstance(first.cell, MinimalGated)
    assert list(first.start) == ["h"]
    assert not second.start
    assert model(torch.zeros(2, 3, dtype=torch.long))[0].shape == (2, 3, 8)


def test_its_settings_are_checked(minimal_gated: str) -> None:
    for settings, message in (
        ({"groups": 0}, "model.minimal_gated.groups=0: input should be greater than 0"),
        ({"groups": "many"}, "model.minimal_gated.groups=many: expected a whole number"),
        ({"group": 2}, "unknown key 'model.minimal_gated.group'; did you mean 'model.minimal_gated.groups'?"),
        ({"groups": 3}, "model.minimal_gated.groups=3 does not fit"),
    ):
        tables = {"mixers": minimal_gated, "width": 8, "minimal_gated": settings}
        with pytest.raises(ConfigError) as raised:
            language_model(ModelConfig.model_validate(tables), 5, 16)
        assert str(raised.value) == message


def test_names_are_taken_once(minimal_gated: str) -> None:
    for name in (minimal_gated, "minimal_gated"):
        with pytest.raises(UserError, match=rf"test_registry.py: registers the mixer {name} twice; rename"):

            @register_mixer(name)
            class Another(MixerSpec[GatedSettings]):
                Settings = GatedSettings

                def make(self, place: MixerPlace[GatedSettings]) -> Recurrent:
                    raise NotImplementedError


def test_a_mixer_without_a_row_is_under_the_laws(minimal_gated: str) -> None:
    others = {name: row for name, row in ROWS.items() if name != "own-cell"}
    assert [*missing_rows(others, reads_memory=False)] == [minimal_gated]
    assert missing_rows(ROWS, reads_memory=False) == missing_rows(READING, reads_memory=True) == {}


def test_it_is_gone_after_the_test() -> None:
    """The fixture above leaves nothing behind."""
    assert "minimal-gated" not in mixer_specs()


def test_mixers_over_a_memory_need_one() -> None:
    config = ModelConfig(mixers="lstm+cross", width=8, layers=1)
    decoder(config, 5, 16, memory_width=4)
    with pytest.raises(ConfigError, match="'cross' reads a memory, and this stack has none"):
        language_model(config, 5, 16)
    with pytest.raises(ConfigError, match=r"never reads the source: .*attention-rnn, cross"):
        decoder(ModelConfig(mixers="lstm", width=8), 5, 16, memory_width=4)


@pytest.mark.parametrize("name", mixer_specs())
def test_facts_are_those_of_the_mixer_made(name: str) -> None:
    """`same_width` and `bounded` equal those of the module with default settings."""
    spec = mixer_specs()[name]
    place = MixerPlace(spec.Settings(), d_in=8, width=16, memory_width=8)
    made: Any = spec.make(place)
    assert (made.d_in, made.d_out) == ((16, 16) if spec.same_width else (8, 16))
    if spec.sees_whole_row:
        whole = spec.make(MixerPlace(spec.Settings(), 16, 16, causal=False))
        x = torch.randn(1, 4, 16, requires_grad=True)
        whole(x)[0][:, 0].sum().backward()
        assert x.grad is not None
        assert x.grad[:, 3].any(), "the first position sees the last"


@pytest.mark.parametrize("name", [name for name, spec in mixer_specs().items() if not spec.reads_memory])
def test_a_mixer_is_called_without_numbers(name: str) -> None:
    """As a mixer of a plugin is before its model is made."""
    tables = {"mixers": name, "width": 16, "layers": 1}
    config = resolve_mixer_settings(from_tables({"model": tables}).model, tables)
    with shapes_only(), torch.no_grad():
        model = language_model(config, 5, 16)
        vectors = model(torch.zeros(2, 3, dtype=torch.long))[0]
    assert vectors.is_meta
    assert vectors.shape == (2, 3, 16)
