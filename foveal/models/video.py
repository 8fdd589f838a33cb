"""Encoders of video frames from a config."""

from foveal.config import ConfigError, EncoderConfig
from foveal.encoders.video import Conv3dEncoder, FrameEncoder
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.models.encoder import EncoderMixerFactory, encoder_pooling_of
from foveal.models.image_networks import image_encoder, output_grid
from foveal.models.network_registry import network_settings
from foveal.models.stack import make_last_norm, make_stack


def video_encoder(
    config: EncoderConfig, channels: int, size: int, max_length: int
) -> FrameEncoder | Conv3dEncoder:
    """Make an encoder of clips with square frames of `size` pixels. A learned position table has `max_length`
    positions.

    Raises: ConfigError: the network is unknown, reads only single images, or is too deep for such small
    frames.
    """
    if config.kind == "conv3d":
        try:
            return Conv3dEncoder(channels, config.width, config.layers, size)
        except ValueError as error:
            raise ConfigError(f"{error}: lower model.encoder.layers, or raise data.image.size") from None
    name = config.network
    network = image_encoder(
        name,
        channels,
        config.stem,
        config.network_activation,
        size,
        config.network_norm,
        network_settings(config),
    )
    if any(isinstance(module, DataDependentInit) for module in network.modules()):
        raise ConfigError(
            f"model.encoder.network={name} is fitted to single images: use a network such as lenet-5"
        )
    rows, columns = output_grid(name, network, size)
    stack = make_stack(EncoderMixerFactory(config), config.width, max_length)
    last, features = make_last_norm(config), rows * columns * network.width
    return FrameEncoder(network, features, stack, config.width, last, encoder_pooling_of(config))
