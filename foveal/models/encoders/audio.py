"""The encoders of frames of sound that are shorter than their source."""

from torch import nn

from foveal.config import EncoderConfig
from foveal.models.encoder import audio_encoder
from foveal.models.encoder_registry import EncoderSpec, SeriesSizes, register_encoder
from foveal.models.stack_settings import VECTOR_ENCODER
from foveal.plugins.constructor_settings import NoSettings


@register_encoder("pyramid")
class PyramidSpec(EncoderSpec[NoSettings]):
    reads = ("audio",)
    shared_settings = frozenset({"width", "layers", "dropout"})
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: SeriesSizes) -> nn.Module:
        return audio_encoder(config, sizes.channels)


@register_encoder("convolution")
class ConvolutionSpec(PyramidSpec):
    shared_settings = VECTOR_ENCODER
