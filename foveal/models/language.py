"""Language models from a config: which mixer in which layer, and how the parts fit."""

from torch import nn

from foveal.config import ConfigError, ModelConfig, nearest
from foveal.heads.generate import Generator
from foveal.layers.attention import SelfAttention
from foveal.layers.block import Block, Stack
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.feedforward import make_feedforward
from foveal.layers.norm import make_norm
from foveal.layers.position import LearnedPosition, Positioned, SinusoidalPosition
from foveal.layers.recurrent import GRU, LSTM, Elman, Recurrent

MIXERS = ("rnn", "lstm", "gru", "attention")
"""The names that a pattern may hold."""


def language_model(config: ModelConfig, vocabulary: int, context: int) -> Generator:
    """A generator over `vocabulary` tokens; a learned position table has `context` places."""
    embedded = {0: config.width, -1: vocabulary}.get(config.embedding, config.embedding)
    embedding = OneHot(vocabulary) if config.embedding == -1 else Embedding(vocabulary, embedded)
    positioned = make_positions(config, embedded, context)
    d_in = 2 * embedded if positioned is not None and config.positions.join == "concatenate" else embedded
    kinds = [name.strip() for name in config.mixers.split(",")]
    blocks: list[nn.Module] = []
    for layer in range(config.layers):
        kind = kinds[layer % len(kinds)]
        # Only a recurrent mixer without a residual may change the width; else the first layer does it.
        narrow = d_in != config.width and (config.residual or kind == "attention")
        if narrow:
            raise ConfigError(
                f"the first layer gets vectors of width {d_in}, but model.width={config.width}: "
                "a residual or attention needs them equal; set model.embedding (half of it with "
                "model.positions.join=concatenate) to fit"
            )
        blocks.append(
            Block(
                make_mixer(kind, config, d_in),
                make_feedforward(config.feedforward, config.width, config.expansion),
                config.norm,
                config.norm_place,
                config.residual,
                config.dropout,
            )
        )
        d_in = config.width
    last = make_norm(config.norm if config.norm_place == "pre" else "none", config.width)
    return Generator(embedding, Stack(blocks, positioned), config.width, last, config.tied)


def make_mixer(kind: str, config: ModelConfig, d_in: int) -> nn.Module:
    """The mixer called `kind`, from vectors of width `d_in` to the model's width."""
    width, recurrent = config.width, config.recurrent
    if kind == "rnn":
        return Recurrent(Elman(d_in, width, recurrent.nonlinearity), recurrent.learned_start)
    if kind == "lstm":
        return Recurrent(LSTM(d_in, width), recurrent.learned_start)
    if kind == "gru":
        return Recurrent(GRU(d_in, width, recurrent.reset), recurrent.learned_start)
    if kind == "attention":
        rotary = config.positions.kind == "rotary"
        return SelfAttention(width, config.attention.heads, config.attention.window, rotary)
    raise ConfigError(f"model.mixers: unknown mixer '{kind}'{nearest(kind, MIXERS)}")


def make_positions(config: ModelConfig, width: int, context: int) -> Positioned | None:
    """Absolute positions as wide as the embedding, or None."""
    kind, join = config.positions.kind, config.positions.join
    if kind == "learned":
        return Positioned(LearnedPosition(context, width), join)
    if kind == "sinusoidal":
        return Positioned(SinusoidalPosition(width), join)
    return None
