"""A stack from a config: the mixer of each layer, and checks that the parts fit together."""

import math

from torch import nn

from foveal.config import ConfigError, StackConfig
from foveal.layers.blocks.feedforward import make_feedforward
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.mixers.registry import AnyMixerSpec, MixerPlace
from foveal.layers.mixers.rwkv import ChannelMixing
from foveal.layers.norm import make_norm
from foveal.layers.position import AddPositions, LearnedPosition, SinusoidalPosition
from foveal.models.mixer_settings import stack_mixers


class MixerFactory:
    """Makes the mixers that a stack's config names.

    `section` is the stack's place in the config, for messages. A stack without a memory has no mixer that
    reads a memory.

    Raises: ConfigError: a mixer or one of its settings is unknown, or does not fit.
    """

    def __init__(self, config: StackConfig, section: str = "model", memory_width: int = 0):
        self.config, self.section, self.memory_width = config, section, memory_width
        self.mixers = stack_mixers(config, section)
        for name, (spec, _) in self.mixers.items():
            if spec.reads_memory and not memory_width:
                raise ConfigError(f"{section}.mixers: '{name}' reads a memory, and this stack has none")

    def spec(self, name: str) -> AnyMixerSpec:
        """Return the spec of the mixer `name`."""
        return self.mixers[name].spec

    def make(self, name: str, d_in: int, width: int, layer: int) -> nn.Module:
        """Make the mixer `name` of layer number `layer`, from vectors of width `d_in` to `width`."""
        return self.make_one(name, d_in, width, layer)

    def make_one(self, name: str, d_in: int, width: int, layer: int, causal: bool = True) -> nn.Module:
        """Make a single mixer. Unless `causal`, the mixer sees the whole row."""
        spec, settings = self.mixers[name]
        config, positions = self.config, self.config.positions
        place = MixerPlace(
            settings,
            d_in,
            width,
            layer,
            config.layers,
            positions.rotary_base if positions.kind == "rotary" else 0.0,
            causal,
            self.memory_width,
            config.residual,
            config.norm_epsilon,
        )
        return spec.make(place)


def make_stack(mixers: MixerFactory, embedding_width: int, context: int) -> Stack:
    """Make the stack for input vectors of `embedding_width`. A learned position table has `context`
    positions.

    Raises: ConfigError: the widths of the embedding and of the first mixer do not fit.
    """
    config = mixers.config
    positioned = make_positions(config, embedding_width, context)
    concatenated = positioned is not None and config.positions.join == "concatenate"
    d_in = 2 * embedding_width if concatenated else embedding_width
    block_settings = (
        config.norm,
        config.norm_placement,
        config.residual,
        config.dropout,
        config.norm_epsilon,
    )
    blocks: list[nn.Module] = []
    for layer in range(config.layers):
        names = config.pattern[layer % len(config.pattern)]
        for number, name in enumerate(names, 1):
            _check_width(mixers, name, d_in)
            feedforward = make_stack_feedforward(config) if number == len(names) else None
            blocks.append(Block(mixers.make(name, d_in, config.width, layer), feedforward, *block_settings))
            d_in = config.width
        if config.feedforward == "channel-mixing":
            hidden = round(config.expansion * config.width)
            mixing = ChannelMixing(config.width, hidden, layer, config.layers, config.residual)
            blocks.append(Block(mixing, None, *block_settings))
    return Stack(blocks, positioned)


def _check_width(mixers: MixerFactory, name: str, d_in: int) -> None:
    """Check the input width of a mixer: only the first mixer may change the width, and only without a
    residual connection."""
    config, section = mixers.config, mixers.section
    if d_in == config.width or not (config.residual or mixers.spec(name).same_width):
        return
    reason = "a residual needs" if config.residual else f"the mixer {name} needs"
    raise ConfigError(
        f"the first layer gets vectors of width {d_in}, but {section}.width={config.width}: {reason} them "
        f"equal; set {section}.embedding_width (half of it with {section}.positions.join=concatenate) to fit"
    )


def make_embedding(config: StackConfig, vocabulary: int) -> Embedding | OneHot:
    """Make the embedding of the config. Width -1 means one-hot vectors, and 0 the stack's width."""
    if config.embedding_width == -1:
        return OneHot(vocabulary)
    width = config.embedding_width or config.width
    return Embedding(vocabulary, width, math.sqrt(width) if config.embedding_scale else 1.0)


def make_embedding_norm(config: StackConfig, width: int) -> nn.Module:
    """Make the norm after the embedding. With added positions, the norm comes after the positions instead."""
    added = config.positions.kind in ("learned", "sinusoidal")
    kind = config.norm if config.embedding_norm and not added else "none"
    return make_norm(kind, width, config.norm_epsilon)


def make_last_norm(config: StackConfig) -> nn.Module:
    """Make the norm after the last block, which all but post-norm blocks need."""
    return make_norm(
        config.norm if config.norm_placement != "post" else "none", config.width, config.norm_epsilon
    )


def make_stack_feedforward(config: StackConfig) -> nn.Module | None:
    """Make the feed-forward layer of a layer's last block; channel mixing is a mixer with its own block."""
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
        experts.capacity_factor,
    )


def make_positions(config: StackConfig, width: int, context: int) -> AddPositions | None:
    """Make absolute positions as wide as the embedding, followed by the embedding's norm. None for other
    kinds.

    Raises: ConfigError: sinusoidal positions would have an odd width.
    """
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
