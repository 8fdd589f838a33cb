"""Encoders from a config, and models that combine an encoder with a head."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.config import ConfigError, EncoderConfig, EncoderStackConfig
from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, layer_groups, reusable_encoder
from foveal.encoders.audio import ConvSubsamplingEncoder, PyramidalLSTMEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.encoders.pooling import EncoderPooling
from foveal.encoders.series import SeriesEncoder
from foveal.encoders.text import TextEncoder
from foveal.encoders.words import WordEncoder
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.embedding import SegmentVectors
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.word_vectors import WordVectors
from foveal.models.stack import (
    MixerFactory,
    make_embedding,
    make_embedding_norm,
    make_last_norm,
    make_stack,
)

MAX_AUDIO_POSITIONS = 2048
"""Learned positions behind the convolutions: 82 seconds."""


class EncoderMixerFactory(MixerFactory):
    """Makes the mixers of an encoder, which reads the whole row at once.

    Unless the encoder is causal, a mixer that can see the whole row does so. If the config asks for both
    directions, other mixers get a second mixer for the reversed row.

    Raises: ConfigError: the encoder should be both causal and bidirectional.
    """

    config: EncoderStackConfig

    def __init__(self, config: EncoderStackConfig, section: str = "model.encoder"):
        super().__init__(config, section)
        if config.causal and config.bidirectional:
            raise ConfigError(
                f"{section}.causal=true reads in one direction only: set {section}.bidirectional=false"
            )

    @property
    def sees_ahead(self) -> bool:
        """Return whether some mixer lets a position see later positions."""
        whole_row = any(spec.sees_whole_row for spec, _ in self.mixers.values())
        return not self.config.causal and (self.config.bidirectional or whole_row)

    def make(self, name: str, d_in: int, width: int, layer: int) -> nn.Module:
        if self.spec(name).sees_whole_row and not self.config.causal:
            return self.make_one(name, d_in, width, layer, causal=False)
        if not self.config.bidirectional:
            return self.make_one(name, d_in, width, layer)
        concatenate = not self.spec(name).same_width
        if concatenate and width % 2:
            raise ConfigError(f"bidirectional mixers need an even width, not {self.section}.width={width}")
        direction_width = width // 2 if concatenate else width
        there, back = (self.make_one(name, d_in, direction_width, layer) for _ in range(2))
        return Bidirectional(there, back, "concatenate" if concatenate else "sum")


def text_encoder(
    config: EncoderStackConfig, vocabulary: int, max_length: int, section: str = "model.encoder"
) -> TextEncoder:
    """Make an encoder of `vocabulary` tokens; a learned position table has `max_length` rows."""
    mixers = EncoderMixerFactory(config, section)
    embedding = make_embedding(config, vocabulary)
    stack = make_stack(mixers, embedding.width, max_length)
    last, first = make_last_norm(config), make_embedding_norm(config, embedding.width)
    pooling = encoder_pooling_of(config, section)
    segments = SegmentVectors(config.segments, embedding.width) if config.segments else None
    return TextEncoder(embedding, stack, config.width, last, first, pooling, segments)


def word_encoder(
    config: EncoderConfig, forms: int, counts: Sequence[int], characters: int, max_length: int
) -> WordEncoder:
    """Make an encoder of words with `forms` ids of forms each, whose `counts` are given from id 1 on, and ids
    of `characters`; a learned position table has `max_length` rows.
    """
    vectors = WordVectors(
        forms,
        counts,
        characters,
        config.embedding_width or config.width,
        config.character_width,
        config.character_filters,
        config.word_dropout,
    )
    stack = make_stack(EncoderMixerFactory(config), vectors.width, max_length)
    norm = make_last_norm(config)
    return WordEncoder(vectors, stack, config.width, norm, config.dropout, encoder_pooling_of(config))


def series_encoder(config: EncoderConfig, channels: int, max_length: int) -> SeriesEncoder:
    """Make an encoder of series of `channels` numbers; a learned position table has `max_length` rows."""
    stack = make_stack(EncoderMixerFactory(config), config.width, max_length)
    return SeriesEncoder(channels, stack, config.width, make_last_norm(config), encoder_pooling_of(config))


def patch_encoder(config: EncoderConfig, channels: int, size: int) -> PatchEncoder:
    """Make an encoder of square images of `size` pixels.

    A learned position table has a position for each patch, and one for the class token.

    Raises: ConfigError: the image size is not a multiple of the patch size, or the class token sees no patch.
    """
    if size % config.patch_size:
        raise ConfigError(
            f"images of {size}x{size} are not filled by patches of {config.patch_size} pixels: "
            "set data.image.size to a multiple of it"
        )
    has_class_token, mixers = config.pooling == "cls", EncoderMixerFactory(config)
    if has_class_token and not mixers.sees_ahead:
        raise ConfigError(
            "model.encoder.pooling=cls: the class token comes first, so it sees no patch through "
            f"model.encoder.mixers={config.mixers}: set model.encoder.bidirectional=true, and causal=false"
        )
    positions = (size // config.patch_size) ** 2 + has_class_token
    stack = make_stack(mixers, config.width, positions)
    return PatchEncoder(
        channels, config.patch_size, stack, config.width, make_last_norm(config), config.pooling
    )


def audio_encoder(config: EncoderConfig, bins: int) -> PyramidalLSTMEncoder | ConvSubsamplingEncoder:
    """Make an encoder of frames with `bins` numbers each."""
    if config.kind == "pyramid":
        return PyramidalLSTMEncoder(bins, config.width, config.layers, config.dropout)
    stack = make_stack(EncoderMixerFactory(config), config.width, MAX_AUDIO_POSITIONS)
    return ConvSubsamplingEncoder(
        bins, stack, config.width, make_last_norm(config), encoder_pooling_of(config)
    )


def encoder_pooling_of(config: EncoderStackConfig, section: str = "model.encoder") -> EncoderPooling:
    """Return the pooling of an encoder without a class token. `section` is its place in the config.

    Raises: ConfigError: the pooling is that of a class token.
    """
    if config.pooling == "cls":
        raise ConfigError(f"{section}.pooling=cls: only patches have a class token")
    return config.pooling


class EncoderWithHead(nn.Module):
    """An encoder that makes a memory, and a head that reads the memory. Any encoder fits any head."""

    encoder: Any
    head: Any

    def __init__(self, encoder: nn.Module, head: nn.Module):
        super().__init__()
        self.encoder, self.head = encoder, head

    def layer_groups(self) -> LayerGroups:
        """Return the encoder's parameters grouped by depth; the head lies above all blocks."""
        return layer_groups(self.encoder)

    def reusable_encoder(self) -> nn.Module:
        """Return the encoder that another run can reuse: this model's encoder, or a part of it."""
        return reusable_encoder(self.encoder) or self.encoder

    def forward(
        self,
        source: Tensor,
        lengths: Int[Tensor, " B"] | None = None,
        tokens: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B *T C"]:
        """Return the logits of a batch: of the classes, of the label at each place, or of the next tokens.

        `lengths` are those of a source with padding. A decoder reads `tokens`, and its logits are those of
        the token after each of them.

        Raises: ValueError: the head is a decoder, and there are no tokens; or it is none, and there are.
        """
        if (tokens is None) == hasattr(self.head, "init_state"):
            raise ValueError(
                "a decoder reads tokens (B, T) beside the source: model(source, lengths, tokens)"
                if tokens is None
                else "the head of this model reads no tokens: model(source, lengths)"
            )
        memory, _ = self.encode({"source": source}, {} if lengths is None else {"source": lengths})
        if tokens is None:
            features, _ = self.head(memory)
        else:
            features, _, _ = self.head(tokens, self.head.init_state(memory, len(tokens)))
        logits: Tensor = self.head.project(features)
        return logits

    def encode(
        self, columns: Mapping[str, Tensor], lengths: Mapping[str, Tensor]
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory of a batch's `columns`, and `aux`; only columns with padding have `lengths`."""
        memory, aux = self.encoder(columns["source"], lengths.get("source"))
        return memory, aux
