"""Our own mixers, encoders, heads and networks keep the laws by which plugins are checked."""

from collections.abc import Iterable
from typing import Any

import pytest

from foveal.config import EncoderConfig
from foveal.heads.registry import HEADS
from foveal.layers.mixers.registry import MIXERS
from foveal.models.encoder_registry import ENCODERS
from foveal.models.image_networks import smallest_size
from foveal.models.network_registry import NETWORKS
from foveal.models.series_networks import SERIES_NETWORKS
from foveal.plugins.registry import Registry
from foveal.studies.check.law import Law, check_laws
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


@pytest.mark.slow
@pytest.mark.parametrize("network", SERIES_NETWORKS)
def test_networks_of_series_keep_every_law(network: str) -> None:
    config = EncoderConfig(kind="series-network", network=network)
    assert not broken(encoder_laws(ENCODERS["series-network"], config))
