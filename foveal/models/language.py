"""Language models from a config: which mixer in which layer, and how the parts fit."""

from torch import nn

from foveal.config import ConfigError, ModelConfig, nearest
from foveal.heads.generate import Generator
from foveal.layers.attention import SelfAttention
from foveal.layers.block import Block, Stack
from foveal.layers.convolution import Convolution
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.feedforward import make_feedforward
from foveal.layers.mamba import Mamba
from foveal.layers.norm import make_norm
from foveal.layers.position import LearnedPosition, Positioned, SinusoidalPosition
from foveal.layers.recurrent import GRU, LSTM, Elman, Recurrent
from foveal.layers.rwkv import ChannelMixing, TimeMixing
from foveal.layers.ssm import S5

MIXERS = ("rnn", "lstm", "gru", "conv", "attention", "s5", "mamba", "rwkv")
"""The names that a pattern may hold."""

SAME_WIDTH = ("attention", "s5", "mamba", "rwkv")
"""Those whose outputs are as wide as their inputs."""


def language_model(config: ModelConfig, vocabulary: int, context: int) -> Generator:
    """A generator over `vocabulary` tokens; a learned position table has `context` places."""
    embedded = {0: config.width, -1: vocabulary}.get(config.embedding, config.embedding)
    embedding = OneHot(vocabulary) if config.embedding == -1 else Embedding(vocabulary, embedded)
    if config.embedding_norm and config.norm == "none":
        raise ConfigError("model.embedding_norm needs a norm: set model.norm=layer or model.norm=rms")
    positioned = make_positions(config, embedded, context)
    d_in = 2 * embedded if positioned is not None and config.positions.join == "concatenate" else embedded
    kinds = [name.strip() for name in config.mixers.split(",")]
    for kind in kinds:
        if kind not in MIXERS:
            raise ConfigError(f"model.mixers: unknown mixer '{kind}'{nearest(kind, MIXERS)}")
    blocks: list[nn.Module] = []
    for layer in range(config.layers):
        kind = kinds[layer % len(kinds)]
        # Some mixers may change the width, without a residual; the first layer does it.
        narrow = d_in != config.width and (config.residual or kind in SAME_WIDTH)
        if narrow:
            raise ConfigError(
                f"the first layer gets vectors of width {d_in}, but model.width={config.width}: "
                f"a residual, {', '.join(SAME_WIDTH)} need them equal; set model.embedding (half of it with "
                "model.positions.join=concatenate) to fit"
            )
        around = (config.norm, config.norm_place, config.residual, config.dropout)
        blocks.append(Block(make_mixer(kind, config, d_in, layer), make_layer(config), *around))
        if config.feedforward == "channel-mixing":
            hidden = round(config.expansion * config.width)
            blocks.append(Block(ChannelMixing(config.width, hidden, layer, config.layers), None, *around))
        d_in = config.width
    last = make_norm(config.norm if config.norm_place == "pre" else "none", config.width)
    first = make_norm(config.norm if config.embedding_norm else "none", embedded)
    return Generator(
        embedding, Stack(blocks, positioned), config.width, last, config.tied, first, config.projection_bias
    )


def make_mixer(kind: str, config: ModelConfig, d_in: int, layer: int) -> nn.Module:
    """The mixer called `kind` of a layer, from vectors of width `d_in` to the model's width."""
    width, recurrent = config.width, config.recurrent
    if kind == "rnn":
        return Recurrent(Elman(d_in, width, recurrent.nonlinearity), recurrent.learned_start)
    if kind == "lstm":
        return Recurrent(LSTM(d_in, width), recurrent.learned_start)
    if kind == "gru":
        return Recurrent(GRU(d_in, width, recurrent.reset), recurrent.learned_start)
    if kind == "conv":
        dilations = config.convolution.dilations.split(",")
        dilation = int(dilations[layer % len(dilations)])
        return Convolution(d_in, width, config.convolution.kernel, dilation)
    if kind == "attention":
        rotary = config.positions.kind == "rotary"
        return SelfAttention(width, config.attention.heads, config.attention.window, rotary)
    if kind == "s5":
        return S5(width, config.s5.states, config.s5.blocks)
    if kind == "mamba":
        return Mamba(width, config.mamba.expansion, config.mamba.states, config.mamba.kernel)
    return TimeMixing(width, layer, config.layers)


def make_layer(config: ModelConfig) -> nn.Module | None:
    """The feed-forward layer in each mixer's block; channel mixing is a mixer with a block of its own."""
    experts = config.experts
    if config.feedforward == "channel-mixing":
        return None
    return make_feedforward(
        config.feedforward,
        config.width,
        config.expansion,
        config.activation,
        experts.count,
        experts.active,
        experts.balance,
    )


def make_positions(config: ModelConfig, width: int, context: int) -> Positioned | None:
    """Absolute positions as wide as the embedding, or None."""
    kind, join = config.positions.kind, config.positions.join
    if kind == "learned":
        return Positioned(LearnedPosition(context, width), join)
    if kind == "sinusoidal":
        if width % 2:
            raise ConfigError(f"sinusoidal positions need an even width, not {width}: set model.embedding")
        return Positioned(SinusoidalPosition(width), join)
    return None
