"""The names of queries and keys, on an untrained translator: what a position reads, and what it writes."""

import pytest

from foveal.inspection.attention.layers import START, capture_attention
from foveal.inspection.chosen_input import InputOptions, choose_input
from tests.support.untrained_runs import KINDS


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def test_a_decoder_reads_the_target_one_later() -> None:
    """Where attention is causal a query has the token that is read; across, the one that is written."""
    run = KINDS["translation"]()
    chosen = choose_input(run, InputOptions(row=0), print)
    layers = {layer.kind: layer for layer in capture_attention(run.model, chosen)}
    assert set(layers) == {"self", "causal", "cross"}
    assert layers["self"].queries == layers["self"].keys == tuple(chosen.source)
    read = (START, *chosen.target[:-1])
    assert layers["causal"].queries == layers["causal"].keys == read
    assert layers["cross"].queries == tuple(chosen.target)
    assert layers["cross"].keys == tuple(chosen.source)
    assert chosen.source != chosen.target


def test_a_language_model_reads_its_source() -> None:
    run = KINDS["language-model"]()
    chosen = choose_input(run, InputOptions(text="the old cat"), print)
    (layer,) = capture_attention(run.model, chosen)
    assert layer.queries == layer.keys == tuple(chosen.source) != tuple(chosen.target)
