"""A stack from a config: which mixer in which layer, and how the parts fit."""

from torch import nn

from foveal.config import ConfigError, StackConfig, suggest
from foveal.layers.blocks.feedforward import make_feedforward
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.mixers.causal_conv1d import CausalConv1d
from foveal.layers.mixers.mamba import Mamba
from foveal.layers.mixers.recurrent import GRU, LSTM, Elman, Recurrent
from foveal.layers.mixers.rwkv import ChannelMixing, TimeMixing
from foveal.layers.mixers.s5 import S5
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.norm import make_norm
from foveal.layers.position import AddPositions, LearnedPosition, SinusoidalPosition

MIXERS = ("rnn", "lstm", "gru", "conv", "attention", "s5", "mamba", "rwkv")
"""The names that any pattern may hold."""

SAME_WIDTH = ("attention", "s5", "mamba", "rwkv", "cross")
"""Those whose outputs are as wide as their inputs."""


class MixerFactory:
    """Makes the mixer of a name, width and place; decoders over a memory and encoders have their own."""

    def __init__(self, config: StackConfig, section: str = "model"):
        self.config, self.section = config, section

    @property
    def names(self) -> tuple[str, ...]:
        return MIXERS

    def make(self, kind: str, d_in: int, width: int, layer: int) -> nn.Module:
        """From vectors of width `d_in` to `width`, in block number `layer`."""
        config = self.config
        if kind == "rnn":
            return Recurrent(
                Elman(d_in, width, config.recurrent.nonlinearity), config.recurrent.learned_initial_state
            )
        if kind == "lstm":
            return Recurrent(LSTM(d_in, width), config.recurrent.learned_initial_state)
        if kind == "gru":
            return Recurrent(
                GRU(d_in, width, config.recurrent.reset_after), config.recurrent.learned_initial_state
            )
        if kind == "conv":
            dilations = config.convolution.dilations.split(",")
            return CausalConv1d(
                d_in, width, config.convolution.kernel_size, int(dilations[layer % len(dilations)])
            )
        if kind == "attention":
            rotary = config.positions.kind == "rotary"
            return SelfAttention(width, config.attention.heads, config.attention.window, rotary)
        if kind == "s5":
            return S5(width, config.s5.state_size, config.s5.blocks)
        if kind == "mamba":
            return Mamba(width, config.mamba.expand, config.mamba.state_size, config.mamba.conv_kernel)
        return TimeMixing(width, layer, config.layers)


def make_stack(mixers: MixerFactory, embedding_width: int, context: int) -> Stack:
    """The stack behind vectors of width `embedding_width`; a learned position table has `context` places."""
    config, section = mixers.config, mixers.section
    positioned = make_positions(config, embedding_width, context)
    d_in = (
        2 * embedding_width
        if positioned is not None and config.positions.join == "concatenate"
        else embedding_width
    )
    pattern = [[name.strip() for name in layer.split("+")] for layer in config.mixers.split(",")]
    for kind in (name for layer in pattern for name in layer):
        if kind not in mixers.names:
            raise ConfigError(f"{section}.mixers: unknown mixer '{kind}'{suggest(kind, mixers.names)}")
    around = (config.norm, config.norm_placement, config.residual, config.dropout, config.norm_epsilon)
    blocks: list[nn.Module] = []
    for layer in range(config.layers):
        kinds = pattern[layer % len(pattern)]
        for kind in kinds:
            # Some mixers may change the width, without a residual; the first block does it.
            if d_in != config.width and (config.residual or kind in SAME_WIDTH):
                raise ConfigError(
                    f"the first layer gets vectors of width {d_in}, but {section}.width={config.width}: "
                    f"a residual, {', '.join(SAME_WIDTH)} need them equal; set {section}.embedding_width (half of "
                    f"it with {section}.positions.join=concatenate) to fit"
                )
            feedforward = make_stack_feedforward(config) if kind is kinds[-1] else None
            blocks.append(Block(mixers.make(kind, d_in, config.width, layer), feedforward, *around))
            d_in = config.width
        if config.feedforward == "channel-mixing":
            hidden = round(config.expansion * config.width)
            blocks.append(Block(ChannelMixing(config.width, hidden, layer, config.layers), None, *around))
    return Stack(blocks, positioned)


def make_embedding(config: StackConfig, vocabulary: int) -> Embedding | OneHot:
    if config.embedding_width == -1:
        return OneHot(vocabulary)
    return Embedding(vocabulary, config.embedding_width or config.width)


def make_embedding_norm(config: StackConfig, width: int) -> nn.Module:
    """The norm right behind the embedding; that of added positions stands behind them."""
    added = config.positions.kind in ("learned", "sinusoidal")
    kind = config.norm if config.embedding_norm and not added else "none"
    return make_norm(kind, width, config.norm_epsilon)


def make_last_norm(config: StackConfig) -> nn.Module:
    """The norm behind the last block, whose own come first."""
    return make_norm(
        config.norm if config.norm_placement == "pre" else "none", config.width, config.norm_epsilon
    )


def make_stack_feedforward(config: StackConfig) -> nn.Module | None:
    """The feed-forward layer behind each layer's mixers; channel mixing is a mixer with its own block."""
    experts = config.experts
    if config.feedforward == "channel-mixing":
        return None
    return make_feedforward(
        config.feedforward,
        config.width,
        config.expansion,
        config.activation,
        experts.count,
        experts.top_k,
        experts.balance_coefficient,
    )


def make_positions(config: StackConfig, width: int, context: int) -> AddPositions | None:
    """Absolute positions as wide as the embedding, with the norm of what comes in behind them; or None."""
    kind, join = config.positions.kind, config.positions.join
    norm = make_norm(
        config.norm if config.embedding_norm else "none",
        2 * width if join == "concatenate" else width,
        config.norm_epsilon,
    )
    if kind == "learned":
        return AddPositions(LearnedPosition(context, width), join, norm)
    if kind == "sinusoidal":
        if width % 2:
            raise ConfigError(
                f"sinusoidal positions need an even width, not {width}: set model.embedding_width"
            )
        return AddPositions(SinusoidalPosition(width), join, norm)
    return None
