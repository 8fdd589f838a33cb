"""Generators from a config: language models, and decoders that read a memory."""

from torch import nn

from foveal.config import ConfigError, ModelConfig
from foveal.heads.decoder_lm import Generator
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.mixers.attention_rnn import Attentive
from foveal.layers.mixers.cross_attention import CrossAttention
from foveal.models.stack import Mixers, make_embedding, make_embedding_norm, make_last_norm, make_stack

READERS = ("cross", "attentive")
"""Mixers that read a memory."""


class DecoderMixers(Mixers):
    """The mixers of a stack over a memory of vectors as wide as `memory`; ConfigError if none reads it."""

    def __init__(self, config: ModelConfig, memory: int):
        super().__init__(config)
        names = {name.strip() for layer in config.mixers.split(",") for name in layer.split("+")}
        if not names & set(READERS):
            raise ConfigError(
                f"model.mixers={config.mixers} never reads the source: add cross (as in attention+cross), or "
                "take attentive"
            )
        self.memory, self.heads, self.attentive = memory, config.attention.heads, config.attentive

    @property
    def names(self) -> tuple[str, ...]:
        return (*super().names, *READERS)

    def make(self, kind: str, d_in: int, width: int, layer: int) -> nn.Module:
        if kind == "cross":
            return CrossAttention(width, self.heads, self.memory)
        if kind == "attentive":
            cell, score, look = self.attentive.cell, self.attentive.score, self.attentive.look
            return Attentive(cell, d_in, width, self.memory, score, hard=look == "hard")
        return super().make(kind, d_in, width, layer)


def language_model(config: ModelConfig, vocabulary: int, context: int) -> Generator:
    """A generator over `vocabulary` tokens from nothing; a learned position table has `context` places."""
    return _generator(config, Mixers(config), vocabulary, context)


def decoder(
    config: ModelConfig, vocabulary: int, context: int, memory: int, shared: Embedding | OneHot | None = None
) -> Generator:
    """A generator that reads a memory of width `memory`; a `shared` embedding is the encoder's."""
    return _generator(config, DecoderMixers(config, memory), vocabulary, context, shared)


def _generator(
    config: ModelConfig,
    mixers: Mixers,
    vocabulary: int,
    context: int,
    shared: Embedding | OneHot | None = None,
) -> Generator:
    embedding = make_embedding(config, vocabulary) if shared is None else shared
    if config.embedding_norm and config.norm == "none":
        raise ConfigError("model.embedding_norm needs a norm: set model.norm=layer or model.norm=rms")
    stack = make_stack(mixers, embedding.width, context)
    last, first = make_last_norm(config), make_embedding_norm(config, embedding.width)
    return Generator(embedding, stack, config.width, last, config.tied, first, config.projection_bias)
