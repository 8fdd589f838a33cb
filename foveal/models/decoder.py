"""Generators from a config: language models, and decoders that read a memory."""

from torch import nn

from foveal.config import ConfigError, ModelConfig
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.mixers.attention_rnn import AttentionRNN
from foveal.layers.mixers.cross_attention import CrossAttention
from foveal.models.stack import MixerFactory, make_embedding, make_embedding_norm, make_last_norm, make_stack

MEMORY_MIXERS = ("cross", "attention-rnn")
"""Mixers that read a memory."""


class DecoderMixerFactory(MixerFactory):
    """The mixers of a stack over a memory of vectors as wide as `memory`; ConfigError if none reads it."""

    def __init__(self, config: ModelConfig, memory: int):
        super().__init__(config)
        names = {name.strip() for layer in config.mixers.split(",") for name in layer.split("+")}
        if not names & set(MEMORY_MIXERS):
            raise ConfigError(
                f"model.mixers={config.mixers} never reads the source: add cross (as in attention+cross), or "
                "take attention-rnn"
            )
        self.memory, self.heads, self.attention_rnn = memory, config.attention.heads, config.attention_rnn

    @property
    def names(self) -> tuple[str, ...]:
        return (*super().names, *MEMORY_MIXERS)

    def make(self, kind: str, d_in: int, width: int, layer: int) -> nn.Module:
        if kind == "cross":
            return CrossAttention(width, self.heads, self.memory)
        if kind == "attention-rnn":
            sizes = self.attention_rnn
            return AttentionRNN(sizes.cell, d_in, width, self.memory, sizes.score, hard=sizes.hard)
        return super().make(kind, d_in, width, layer)


def language_model(config: ModelConfig, vocabulary: int, context: int) -> DecoderLM:
    """A generator over `vocabulary` tokens from nothing; a learned position table has `context` places."""
    return _decoder_lm(config, MixerFactory(config), vocabulary, context)


def decoder(
    config: ModelConfig, vocabulary: int, context: int, memory: int, shared: Embedding | OneHot | None = None
) -> DecoderLM:
    """A generator that reads a memory of width `memory`; a `shared` embedding is the encoder's."""
    return _decoder_lm(config, DecoderMixerFactory(config, memory), vocabulary, context, shared)


def _decoder_lm(
    config: ModelConfig,
    mixers: MixerFactory,
    vocabulary: int,
    context: int,
    shared: Embedding | OneHot | None = None,
) -> DecoderLM:
    embedding = make_embedding(config, vocabulary) if shared is None else shared
    if config.embedding_norm and config.norm == "none":
        raise ConfigError("model.embedding_norm needs a norm: set model.norm=layer or model.norm=rms")
    stack = make_stack(mixers, embedding.width, context)
    last, first = make_last_norm(config), make_embedding_norm(config, embedding.width)
    return DecoderLM(
        embedding, stack, config.width, last, config.tie_embeddings, first, config.projection_bias
    )
