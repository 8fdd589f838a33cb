"""Our own mixers, encoders, heads and networks keep the laws by which plugins are checked."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from foveal import layers
from foveal.config import EncoderConfig
from foveal.heads.registry import HEADS
from foveal.laws.module_states import example_memory
from foveal.laws.trial import Trial
from foveal.layers.mixers.registry import MIXERS
from foveal.models.encoder_registry import ENCODERS
from foveal.models.image_networks import smallest_size
from foveal.models.network_registry import NETWORKS
from foveal.models.series_networks import SERIES_NETWORKS
from foveal.plugins.registry import Registry
from foveal.studies.check.law import Law, check_laws
from foveal.studies.check.part_laws import laws_of_mixer, laws_of_whole_row_mixer
from foveal.studies.check.plugin import LAWS, encoder_laws, network_laws

KINDS: dict[str, Registry[Any]] = {"mixer": MIXERS, "encoder": ENCODERS, "head": HEADS, "model": NETWORKS}
QUICK = {"attention", "ngrams", "words", "linear"}
"""They differ from the others: no law of NaN, no parameters, several ids for a word."""
PARTS = [
    pytest.param(kind, name, marks=() if name in QUICK else pytest.mark.slow)
    for kind, registry in KINDS.items()
    for name in registry
    if name != "series-network"
]


def broken(laws: Iterable[Law]) -> list[str]:
    results = check_laws("part", lambda: laws)
    return [f"{each.law}: {each.problem}" for each in results if each.verdict == "BROKEN"]


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_our_own_parts_keep_every_law(kind: str, name: str) -> None:
    laws = network_laws(name, 3, smallest_size(name, 32)) if kind == "model" else LAWS[kind](name)
    assert not broken(laws)


class _PositionsOfMemory(layers.CrossAttention):
    """Adds its number to each position of the memory."""

    def init_state(self, batch: int, capacity: int | None = None, memory: layers.Memory | None = None) -> Any:
        assert memory is not None
        numbers = torch.arange(memory.mask.shape[1])[:, None]
        return super().init_state(batch, capacity, replace(memory, vectors=memory.vectors + numbers))


class _PositionsOfRow(layers.FullAttention):
    """Adds its number to each position of the row."""

    def forward(self, x: Any, state: Any = None, *, lengths: Any = None) -> Any:
        return super().forward(x + torch.arange(x.shape[1])[:, None], state, lengths=lengths)


def _order_laws(mixer: nn.Module, memory_width: int = 0) -> dict[str, str]:
    """Return the verdicts of the laws of an order."""
    mixer.double()
    memory = example_memory(memory_width, torch.float64) if memory_width else None
    trial = Trial(mixer, 16, torch.float64, 1e-9, standing_nan=False, memory=memory)
    laws = laws_of_mixer if memory_width else laws_of_whole_row_mixer
    results = check_laws("mixer", lambda: laws(lambda: trial))
    return {each.law: each.verdict for each in results if "the order" in each.law or "permuted" in each.law}


def test_attention_does_not_know_an_order() -> None:
    memory, row = "the order of the memory changes nothing", "permuted places have permuted outputs"
    assert _order_laws(layers.CrossAttention(16, 4, 12), 12) == {memory: "holds"}
    assert _order_laws(_PositionsOfMemory(16, 4, 12), 12) == {memory: "BROKEN"}
    assert _order_laws(layers.FullAttention(16, 4)) == {row: "holds"}
    assert _order_laws(_PositionsOfRow(16, 4)) == {row: "BROKEN"}
    assert _order_laws(layers.FullAttention(16, 4, rotary=True)) == {row: "not applicable"}


@pytest.mark.slow
@pytest.mark.parametrize("network", SERIES_NETWORKS)
def test_networks_of_series_keep_every_law(network: str) -> None:
    config = EncoderConfig(kind="series-network", network=network)
    assert not broken(encoder_laws(ENCODERS["series-network"], config))
