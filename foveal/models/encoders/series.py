"""The encoders of series, which read the frames of recordings as well."""

from torch import nn

from foveal.config import EncoderConfig
from foveal.encoders.series import SeriesEncoder
from foveal.models.encoder import series_encoder
from foveal.models.encoder_registry import EncoderComponent, EncoderSpec, SeriesSizes, register_encoder
from foveal.models.series_networks import series_network
from foveal.models.stack_settings import VECTOR_ENCODER
from foveal.plugins.constructor_settings import NoSettings


@register_encoder("series")
class SeriesSpec(EncoderSpec[NoSettings]):
    reads = ("series",)
    shared_settings = VECTOR_ENCODER
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: SeriesSizes) -> SeriesEncoder:
        return series_encoder(config, sizes.channels, sizes.max_length)


@register_encoder("series-network")
class SeriesNetworkSpec(EncoderSpec[NoSettings]):
    reads = ("series", "audio")
    shared_settings = frozenset({"network"})
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: SeriesSizes) -> nn.Module:
        return series_network(config.network).make_encoder(sizes.channels, config)

    def components(self, config: EncoderConfig) -> list[EncoderComponent]:
        return [EncoderComponent(config.network)]
