"""The encoders of images."""

from foveal.config import EncoderConfig
from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.models.encoder import patch_encoder
from foveal.models.encoder_registry import EncoderComponent, EncoderSpec, ImageSizes, register_encoder
from foveal.models.image_networks import image_encoder
from foveal.models.network_registry import network_settings
from foveal.models.stack_settings import NETWORK, VECTOR_ENCODER
from foveal.plugins.constructor_settings import NoSettings


@register_encoder("image")
class ImageSpec(EncoderSpec[NoSettings]):
    reads = ("image",)
    shared_settings = NETWORK
    Settings = NoSettings

    def make(
        self, config: EncoderConfig, settings: NoSettings, sizes: ImageSizes
    ) -> ImageEncoder | PatchEncoder:
        activation, norm = config.network_activation, config.network_norm
        own = network_settings(config)
        return image_encoder(config.network, sizes.channels, config.stem, activation, sizes.size, norm, own)

    def components(self, config: EncoderConfig) -> list[EncoderComponent]:
        return [EncoderComponent(config.network)]


@register_encoder("patches")
class PatchesSpec(EncoderSpec[NoSettings]):
    reads = ("image",)
    shared_settings = VECTOR_ENCODER | {"patch_size"}
    Settings = NoSettings

    def make(self, config: EncoderConfig, settings: NoSettings, sizes: ImageSizes) -> PatchEncoder:
        return patch_encoder(config, sizes.channels, sizes.size)
