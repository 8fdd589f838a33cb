"""The encoders of clips."""

from foveal.config import EncoderConfig
from foveal.encoders.video import Conv3dEncoder, FrameEncoder
from foveal.models.encoder_registry import ClipSizes, EncoderComponent, EncoderSpec, register_encoder
from foveal.models.stack_settings import NETWORK, VECTOR_ENCODER
from foveal.models.video import video_encoder
from foveal.plugins.constructor_settings import NoSettings


@register_encoder("frames")
class FramesSpec(EncoderSpec[NoSettings]):
    reads = ("clip",)
    shared_settings = VECTOR_ENCODER | NETWORK
    Settings = NoSettings

    def make(
        self, config: EncoderConfig, settings: NoSettings, sizes: ClipSizes
    ) -> FrameEncoder | Conv3dEncoder:
        return video_encoder(config, sizes.channels, sizes.size, sizes.max_length)

    def components(self, config: EncoderConfig) -> list[EncoderComponent]:
        return [EncoderComponent(config.network), *super().components(config)]


@register_encoder("conv3d")
class Conv3dSpec(FramesSpec):
    shared_settings = frozenset({"width", "layers"})

    def components(self, config: EncoderConfig) -> list[EncoderComponent]:
        return [EncoderComponent("3D convolution", str(config.layers), str(config.width))]
