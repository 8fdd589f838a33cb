"""The section of a model: its stacks of blocks, what each of their parts may be, and what fits together."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from foveal.config.values import MAX_SIZE, Fraction, NonNegativeFloat, PositiveFloat, Size, StrictModel

ActivationName = Literal["sigmoid", "tanh", "relu", "leaky-relu", "elu", "gelu", "gelu-tanh", "silu"]


class ExpertsConfig(StrictModel):
    count: Size = 8
    top_k: Size = 2
    """Experts that each vector is sent to."""
    balance_coefficient: NonNegativeFloat = 0.01
    """Coefficient of the load balance in the objective."""


class PositionConfig(StrictModel):
    kind: Literal["none", "rotary", "learned", "sinusoidal"] = "none"
    join: Literal["add", "concatenate"] = "add"


MixerPattern = tuple[tuple[str, ...], ...]
"""The mixers of each layer; the layers of a stack repeat the pattern."""


def parse_pattern(pattern: str) -> MixerPattern:
    """Return the names in a pattern: `attention+cross,lstm` has two layers, the first of two mixers."""
    return tuple(tuple(name.strip() for name in layer.split("+")) for layer in pattern.split(","))


class StackConfig(StrictModel):
    """What comes in, and a stack of blocks.

    Each mixer has a section named like the mixer. Mixers declare their settings themselves, so the sections
    are kept here as tables (`mixer_tables`), and `foveal.models.mixer_settings` checks them.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, Any]] = Field(init=False)

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
    experts: ExpertsConfig = ExpertsConfig()
    positions: PositionConfig = PositionConfig()

    @property
    def pattern(self) -> MixerPattern:
        """The names in `mixers`."""
        return parse_pattern(self.mixers)

    @property
    def mixer_names(self) -> tuple[str, ...]:
        """The mixers in `mixers`, each once."""
        return tuple(dict.fromkeys(name for layer in self.pattern for name in layer))

    @property
    def mixer_tables(self) -> dict[str, dict[str, Any]]:
        """The sections of mixers as they were given, by the name of the section."""
        return self.__pydantic_extra__ or {}


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
    network (of the settings here it has network, stem, network_activation and network_norm), or its patches
    before the stack; or the frames of a clip: such a network for each and the stack over them, or as a
    volume: convolutions over time, rows and columns (width and layers)."""
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


class ModelConfig(StackConfig):
    """The stack that the head stands on, and the encoder before it, if any."""

    tie_embeddings: bool = False
    """The projection to the vocabulary shares the embedding's table."""
    projection_bias: bool = True
    initialization: str = "default"
    """How the weights of hidden layers begin: as each does by itself, `xavier`, `kaiming`, or a deviation."""
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


def check_feedforward(name: str, stack: StackConfig) -> None:
    """Check the sizes of the feed-forward layers of the stack in section `name`.

    Raises: ValueError: a size leaves no hidden unit, or not as many experts as a vector is sent to.
    """
    experts = stack.experts
    if stack.feedforward not in ("none", "highway") and stack.expansion * stack.width < 1:
        raise ValueError(
            f"{name}.expansion={stack.expansion:g} of {name}.width={stack.width} leaves no hidden unit"
        )
    if stack.feedforward == "moe" and experts.top_k > experts.count:
        raise ValueError(
            f"{name}.experts.top_k={experts.top_k} is more than {name}.experts.count={experts.count}"
        )
