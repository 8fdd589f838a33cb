"""Encoders of frames from a config."""

from foveal.config import ConfigError, EncoderConfig, ImageConfig
from foveal.encoders.video import FrameEncoder, VolumeEncoder
from foveal.layers.data_dependent_init import Fitted
from foveal.models.encoder import EncoderMixers, summary_of
from foveal.models.image_networks import grid_of, image_encoder
from foveal.models.stack import make_last_norm, make_stack


def frame_encoder(config: EncoderConfig, image: ImageConfig, longest: int) -> FrameEncoder | VolumeEncoder:
    """An encoder of clips whose frames are squares; a learned position table has `longest` places.

    ConfigError for a network that is unknown, begins from images, or is too deep for such frames.
    """
    if config.kind == "volume":
        try:
            return VolumeEncoder(image.channels, config.width, config.layers, image.size)
        except ValueError as error:
            raise ConfigError(f"{error}: lower model.encoder.layers, or raise data.image.size") from None
    name = config.network
    network = image_encoder(
        name, image.channels, config.stem, config.nonlinearity, image.size, config.normalization
    )
    if any(isinstance(module, Fitted) for module in network.modules()):
        raise ConfigError(f"model.encoder.network={name} begins from single images: take one such as lenet-5")
    rows, columns = grid_of(name, network, image.size)
    stack = make_stack(EncoderMixers(config, "model.encoder"), config.width, longest)
    last, features = make_last_norm(config), rows * columns * network.width
    return FrameEncoder(network, features, stack, config.width, last, summary_of(config))
