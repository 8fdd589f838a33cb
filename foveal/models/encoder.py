"""Encoders from a config, and models of an encoder and a head."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from foveal.config import ConfigError, EncoderConfig, EncoderStackConfig
from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, layer_groups, lendable_encoder
from foveal.encoders.audio import ConvSubsamplingEncoder, PyramidalLSTMEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.encoders.pooling import EncoderPooling
from foveal.encoders.series import SeriesEncoder
from foveal.encoders.text import TextEncoder
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.models.stack import (
    MixerFactory,
    make_embedding,
    make_embedding_norm,
    make_last_norm,
    make_stack,
)

MAX_AUDIO_POSITIONS = 2048
"""Places of learned positions behind the convolutions: 82 seconds."""


class EncoderMixerFactory(MixerFactory):
    """Make the mixers of an encoder, which has the whole row at once.

    Mixers that can see the whole row do so unless the encoder is causal; others get a second one on the
    reversed row if the config asks for it.

    Raises: ConfigError: the encoder is to be causal and bidirectional.
    """

    config: EncoderStackConfig

    def __init__(self, config: EncoderStackConfig, section: str = "model.encoder"):
        super().__init__(config, section)
        if config.causal and config.bidirectional:
            raise ConfigError(f"{section}.causal looks back alone: set {section}.bidirectional=false")

    @property
    def sees_ahead(self) -> bool:
        """Whether some mixer lets a position see later ones."""
        whole_row = any(spec.sees_whole_row for spec, _ in self.mixers.values())
        return not self.config.causal and (self.config.bidirectional or whole_row)

    def make(self, name: str, d_in: int, width: int, layer: int) -> nn.Module:
        if self.spec(name).sees_whole_row and not self.config.causal:
            return self.make_one(name, d_in, width, layer, causal=False)
        if not self.config.bidirectional:
            return self.make_one(name, d_in, width, layer)
        beside = not self.spec(name).same_width
        if beside and width % 2:
            raise ConfigError(f"two directions need an even width, not {self.section}.width={width}")
        each = width // 2 if beside else width
        there, back = (self.make_one(name, d_in, each, layer) for _ in range(2))
        return Bidirectional(there, back, "beside" if beside else "sum")


def text_encoder(
    config: EncoderStackConfig, vocabulary: int, max_length: int, section: str = "model.encoder"
) -> TextEncoder:
    """An encoder of `vocabulary` tokens; a learned position table has `max_length` places."""
    mixers = EncoderMixerFactory(config, section)
    embedding = make_embedding(config, vocabulary)
    stack = make_stack(mixers, embedding.width, max_length)
    last, first = make_last_norm(config), make_embedding_norm(config, embedding.width)
    return TextEncoder(embedding, stack, config.width, last, first, encoder_pooling_of(config))


def series_encoder(config: EncoderConfig, channels: int, max_length: int) -> SeriesEncoder:
    """Make an encoder of series of `channels` numbers; a learned position table has `max_length` places."""
    stack = make_stack(EncoderMixerFactory(config), config.width, max_length)
    return SeriesEncoder(channels, stack, config.width, make_last_norm(config), encoder_pooling_of(config))


def patch_encoder(config: EncoderConfig, channels: int, size: int) -> PatchEncoder:
    """An encoder of square images of `size` pixels; a learned position table has a place for each patch, and
    for the class token.

    ConfigError for images that patches don't fill, and for a class token that sees nothing.
    """
    if size % config.patch_size:
        raise ConfigError(
            f"images of {size}x{size} are not filled by patches of {config.patch_size} pixels: "
            "set data.image.size to a multiple of it"
        )
    token, mixers = config.pooling == "cls", EncoderMixerFactory(config)
    if token and not mixers.sees_ahead:
        raise ConfigError(
            "model.encoder.pooling=cls: the class token stands first, so that it sees no patch through "
            f"model.encoder.mixers={config.mixers}: set model.encoder.bidirectional=true, and causal=false"
        )
    places = (size // config.patch_size) ** 2 + token
    stack = make_stack(mixers, config.width, places)
    return PatchEncoder(
        channels, config.patch_size, stack, config.width, make_last_norm(config), config.pooling
    )


def audio_encoder(config: EncoderConfig, bins: int) -> PyramidalLSTMEncoder | ConvSubsamplingEncoder:
    """An encoder of frames with `bins` numbers each."""
    if config.kind == "pyramid":
        return PyramidalLSTMEncoder(bins, config.width, config.layers, config.dropout)
    stack = make_stack(EncoderMixerFactory(config), config.width, MAX_AUDIO_POSITIONS)
    return ConvSubsamplingEncoder(
        bins, stack, config.width, make_last_norm(config), encoder_pooling_of(config)
    )


def encoder_pooling_of(config: EncoderStackConfig) -> EncoderPooling:
    if config.pooling == "cls":
        raise ConfigError("model.encoder.pooling=cls: only patches have a class token")
    return config.pooling


class EncoderWithHead(nn.Module):
    """X, then Y: an encoder that makes a memory, and a head that reads it; any one with any other."""

    encoder: Any
    head: Any

    def __init__(self, encoder: nn.Module, head: nn.Module):
        super().__init__()
        self.encoder, self.head = encoder, head

    def layer_groups(self) -> LayerGroups:
        """Return the encoder's parameters by their depth; the head is on top of all blocks."""
        return layer_groups(self.encoder)

    def lendable_encoder(self) -> nn.Module:
        """Return the encoder that another run can take over: this one, or the part of it that can be lent."""
        return lendable_encoder(self.encoder) or self.encoder

    def encode(
        self, columns: Mapping[str, Tensor], lengths: Mapping[str, Tensor]
    ) -> tuple[Memory, AuxLosses]:
        """The memory of a batch's `columns`, of which some have `lengths`."""
        memory, aux = self.encoder(columns["source"], lengths.get("source"))
        return memory, aux
