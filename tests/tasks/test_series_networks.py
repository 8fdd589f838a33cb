"""Networks of series by name: what is refused, in one line."""

from typing import ClassVar

import pytest
from torch import nn

from foveal.config import ConfigError, EncoderConfig
from foveal.models.series_networks import SERIES_NETWORKS
from foveal.tasks.config import load_config

KIND = "model.encoder.kind=series-network"


class Pooled:
    """A network that makes one vector of a series."""

    has_steps: ClassVar[bool] = False

    def make_encoder(self, channels: int, config: EncoderConfig) -> nn.Module:
        raise AssertionError("not made")


@pytest.mark.parametrize("preset", ["series-classification", "series-tagging", "series-captioning"])
def test_a_network_of_images_is_refused(preset: str) -> None:
    known = "is no network of series; set it to resnet-1d or inception-time"
    for name in ("resnet-20", "nothing"):
        with pytest.raises(ConfigError, match=f"model.encoder.network={name} {known}"):
            load_config(preset, [KIND, f"model.encoder.network={name}"])


def test_one_vector_for_a_series_labels_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERIES_NETWORKS, "pooled", Pooled())
    load_config("series-classification", [KIND, "model.encoder.network=pooled"])
    with pytest.raises(ConfigError, match="labels each step; set it to resnet-1d or inception-time"):
        load_config("series-tagging", [KIND, "model.encoder.network=pooled"])
