"""The section of a model: its stacks of blocks, what each of their parts may be, and what fits together."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from foveal.config.values import MAX_SIZE, Fraction, NonNegativeFloat, PositiveFloat, Size, StrictModel

ActivationName = Literal["sigmoid", "tanh", "relu", "leaky-relu", "elu", "gelu", "gelu-tanh", "silu"]


class AttentionConfig(StrictModel):
    heads: Size = 4
    window: Annotated[int, Field(ge=0, le=MAX_SIZE)] = 0
    """Keys a query sees, itself included; 0 means all before it."""


class RecurrentConfig(StrictModel):
    nonlinearity: Literal["tanh", "relu"] = "tanh"
    """The Elman network's."""
    reset_after: bool = True
    """The GRU's reset gate multiplies before the recurrent product (Cho) or after it (cuDNN, torch)."""
    learned_initial_state: bool = False


class ConvolutionConfig(StrictModel):
    kernel_size: Size = 3
    """Inputs that an output sees."""
    dilations: str = "1"
    """Steps from one of them to the next, a pattern repeated over the layers: `1,2,4,8`."""

    @field_validator("dilations")
    @classmethod
    def _numbers(cls, pattern: str) -> str:
        for step in pattern.split(","):
            if not (step.strip().isdecimal() and 1 <= int(step) <= MAX_SIZE):
                raise ValueError(f"expected numbers from 1 to {MAX_SIZE}, such as 1,2,4,8")
        return pattern


class S5Config(StrictModel):
    state_size: Size = 64
    """Complex states, half of as many conjugate pairs."""
    blocks: Size = 4
    """Blocks of the first state matrix, each a HiPPO matrix of its own."""


class MambaConfig(StrictModel):
    expand: Size = 2
    """Inner width over the model's."""
    state_size: Size = 16
    """States of each inner channel."""
    conv_kernel: Size = 4
    """Inputs that the short convolution sees."""


class ExpertsConfig(StrictModel):
    count: Size = 8
    top_k: Size = 2
    """Experts that each vector is sent to."""
    balance_coefficient: NonNegativeFloat = 0.01
    """Coefficient of the load balance in the objective."""


class PositionConfig(StrictModel):
    kind: Literal["none", "rotary", "learned", "sinusoidal"] = "none"
    join: Literal["add", "concatenate"] = "add"


class StackConfig(StrictModel):
    """What comes in, and a stack of blocks."""

    mixers: str = "lstm"
    """Pattern of mixers, repeated over the layers: `lstm`, `lstm,attention`; `attention+cross` are two in a
    layer, one after the other."""
    layers: Size = 2
    width: Size = 256
    embedding_width: Annotated[int, Field(ge=-1, le=MAX_SIZE)] = 0
    """Width of the embedding: 0 is the model's width, -1 is one-hot."""
    embedding_norm: bool = False
    """A norm of what comes in: behind the embedding (RWKV's), or behind added positions (BERT's)."""
    feedforward: Literal["none", "mlp", "swiglu", "highway", "moe", "channel-mixing"] = "none"
    expansion: Annotated[float, Field(gt=0, le=1024)] = 4.0
    """Width of the feed-forward layer over the model's (SwiGLU takes 2/3 of it: same parameters)."""
    activation: ActivationName = "gelu"
    """Of the MLP and the experts; gelu-tanh is GPT-2's approximation."""
    norm: Literal["none", "layer", "rms"] = "none"
    norm_placement: Literal["pre", "post"] = "pre"
    norm_epsilon: PositiveFloat = 1e-5
    """Added to the variance in every norm."""
    residual: bool = False
    dropout: Fraction = 0.0
    """Share of each mixer's and feed-forward layer's outputs that is dropped while training."""
    attention: AttentionConfig = AttentionConfig()
    recurrent: RecurrentConfig = RecurrentConfig()
    convolution: ConvolutionConfig = ConvolutionConfig()
    s5: S5Config = S5Config()
    mamba: MambaConfig = MambaConfig()
    experts: ExpertsConfig = ExpertsConfig()
    positions: PositionConfig = PositionConfig()


class EncoderStackConfig(StackConfig):
    """A stack that sees the whole row, and the one vector that it makes of it."""

    bidirectional: bool = False
    """Each mixer but attention becomes two, one on the reversed row: of half the width, outputs side by
    side, or of the whole width and added where a mixer can't change its width."""
    causal: bool = False
    """Attention sees what came before alone, as in a language model."""
    pooling: Literal["mean", "last", "final-states", "cls"] = "mean"
    """The one vector of a memory: the mean, the last, or the last of the first half and the first of the
    second (where a bidirectional mixer's two directions end); of patches also a class token, a learned
    vector that goes through the stack before them."""


EncoderName = Literal[
    "none", "text", "pyramid", "convolution", "series", "image", "patches", "frames", "conv3d"
]


class EncoderConfig(EncoderStackConfig):
    """What makes a memory of the source; a decoder reads it by `cross` or `attention-rnn` mixers."""

    kind: EncoderName = "none"
    """Text; vectors of measured series; frames of sound: a pyramid of bidirectional LSTMs (of the settings
    here it has width, layers and dropout), or strided convolutions before the stack; an image: a named
    network (of the settings here it has network, stem, network_activation and network_norm), or its patches before
    the stack; or the frames of a clip: such a network for each and the stack over them, or as a volume:
    convolutions over time, rows and columns (width and layers)."""
    network: str = "resnet-20"
    """A network for images, by its published name."""
    stem: Literal["published", "small"] = "published"
    """How it begins; small, for images of about 32 pixels, is one convolution that keeps their size."""
    network_activation: Literal["published", ActivationName] = "published"
    """The network's activation function, if another one."""
    network_norm: Literal["published", "layer", "instance", "group"] = "published"
    """What the network has in place of its batch norms: a norm of each image by itself, over all channels,
    each one, or groups of them."""
    patch_size: Size = 4
    """Side of a patch, in pixels."""


class AttentionRNNConfig(StrictModel):
    """A recurrent decoder's cell, and how it reads the memory."""

    cell: Literal["rnn", "lstm", "gru"] = "gru"
    score: Literal["initial-state", "every-step", "additive", "dot", "scaled-dot", "general"] = "additive"
    """How a state and a vector of the memory are compared. Two do not attend (the bottleneck): every-step has
    the memory's summary at every step, initial-state in the first state alone."""
    hard: bool = False
    """At all places by their weights, or at one that is drawn, learned by REINFORCE."""

    @model_validator(mode="after")
    def _has_places(self) -> "AttentionRNNConfig":
        if self.hard and self.score in ("initial-state", "every-step"):
            raise ValueError(
                f"hard=true needs scores of places to draw one: take another than score={self.score}"
            )
        return self


class ModelConfig(StackConfig):
    """The stack that the head stands on, and the encoder before it, if any."""

    tie_embeddings: bool = False
    """The projection to the vocabulary shares the embedding's table."""
    projection_bias: bool = True
    initialization: str = "default"
    """How the weights of hidden layers begin: as each does by itself, `xavier`, `kaiming`, or a deviation."""
    attention_rnn: AttentionRNNConfig = AttentionRNNConfig()
    head_pooling: Literal["mean", "last", "max", "attention", "encoder"] = "mean"
    """How a classifier makes one vector of the memory's; encoder is the encoder's."""
    encoder: EncoderConfig = EncoderConfig()
    question: EncoderStackConfig = EncoderStackConfig()
    """What reads the question about an image, and another one what was said before."""
    fusion: EncoderStackConfig = EncoderStackConfig()
    """What sees their vectors and the image's, side by side."""

    @field_validator("initialization")
    @classmethod
    def _known(cls, rule: str) -> str:
        if rule in ("default", "xavier", "kaiming"):
            return rule
        try:
            fits = 0 < float(rule) <= MAX_SIZE
        except ValueError:
            fits = False
        if not fits:
            raise ValueError("expected default, xavier, kaiming or a deviation above 0, such as 0.01")
        return rule


def mixer_names(pattern: str) -> set[str]:
    """The mixers of a pattern such as `lstm,attention+cross`."""
    return {name.strip() for name in re.split(r"[,+]", pattern)}


def check_stack(name: str, stack: StackConfig) -> None:
    """Raise ValueError for sizes of a stack that don't divide, or leave nothing."""
    heads, experts = stack.attention.heads, stack.experts
    if mixer_names(stack.mixers) & {"attention", "cross"}:
        if stack.width % heads:
            raise ValueError(
                f"{name}.width={stack.width} is not a multiple of {name}.attention.heads={heads}"
            )
        if stack.positions.kind == "rotary" and stack.width // heads % 2:
            raise ValueError(
                "rotary positions need an even head width, "
                f"not {stack.width}/{heads} = {stack.width // heads}"
            )
    if stack.feedforward not in ("none", "highway") and stack.expansion * stack.width < 1:
        raise ValueError(
            f"{name}.expansion={stack.expansion:g} of {name}.width={stack.width} leaves no hidden unit"
        )
    if stack.feedforward == "moe" and experts.top_k > experts.count:
        raise ValueError(
            f"{name}.experts.top_k={experts.top_k} is more than {name}.experts.count={experts.count}"
        )
    if "s5" in stack.mixers and stack.s5.state_size % stack.s5.blocks:
        raise ValueError(
            f"{name}.s5.state_size={stack.s5.state_size} is not a multiple of {name}.s5.blocks={stack.s5.blocks}"
        )
