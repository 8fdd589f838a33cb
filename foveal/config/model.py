"""The section `model` of a config: its stacks of blocks, their parts, and checks that the parts
fit together."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from foveal.config.values import (
    MAX_SIZE,
    Fraction,
    LayerCount,
    Names,
    NonNegativeFloat,
    PartSection,
    PositiveFloat,
    ReadIf,
    Size,
    StrictModel,
)

MAX_SEGMENTS = 64
ActivationName = Literal["sigmoid", "tanh", "relu", "leaky-relu", "elu", "gelu", "gelu-tanh", "silu"]


class ExpertsConfig(StrictModel):
    """The section `experts` of a stack: its feed-forward layers as mixtures of experts."""

    count: Size = 8
    """Experts of a feed-forward layer."""
    top_k: Size = 2
    """Experts that each vector is sent to."""
    balance_coefficient: NonNegativeFloat = 0.01
    """Coefficient of the load balance in the objective."""
    capacity_factor: NonNegativeFloat = 0.0
    """Room of an expert in training, over its equal share of a row's tokens; 0 drops none."""


class PositionConfig(StrictModel):
    """The section `positions` of a stack."""

    kind: Literal["none", "rotary", "learned", "sinusoidal"] = "none"
    """How positions are encoded: none, rotary, learned or sinusoidal."""
    join: Annotated[Literal["add", "concatenate"], ReadIf("kind", "learned", "sinusoidal")] = "add"
    """How position vectors join the vectors that come in: add or concatenate."""
    rotary_base: Annotated[PositiveFloat, ReadIf("kind", "rotary")] = 10_000.0
    """Base of the angles of rotary positions."""


MixerPattern = tuple[tuple[str, ...], ...]
"""The mixers of each layer; the layers of a stack repeat the pattern."""


def parse_pattern(pattern: str) -> MixerPattern:
    """Return the names in a pattern: `attention+cross,lstm` has two layers, the first of two mixers."""
    return tuple(tuple(name.strip() for name in layer.split("+")) for layer in pattern.split(","))


class StackConfig(PartSection):
    """An embedding, and a stack of blocks. Each mixer has a section named like the mixer."""

    mixers: Annotated[str, Names("mixer")] = "lstm"
    """Pattern of mixers, repeated over the layers: commas between layers, + within one.

    In `attention+cross,lstm` the first of two layers has two mixers, one after the other."""
    layers: LayerCount = 2
    """Number of layers, each of mixers and a feed-forward layer."""
    width: Size = 256
    """Width of the vectors between layers."""
    embedding_width: Annotated[int, Field(ge=-1, le=MAX_SIZE)] = 0
    """Width of the embedding of tokens: 0 is the width of the stack, -1 is one-hot."""
    embedding_scale: bool = False
    """Multiplies the embedding of tokens by the root of its width."""
    embedding_norm: Annotated[bool, ReadIf("norm", "layer", "rms")] = False
    """Normalizes the vectors that come in.

    The norm stands behind the embedding (RWKV), or behind added positions (BERT)."""
    feedforward: Literal["none", "mlp", "swiglu", "geglu", "highway", "moe", "channel-mixing"] = "none"
    """Feed-forward layer: none, mlp, swiglu, geglu, highway, moe or channel-mixing."""
    expansion: Annotated[
        float, Field(gt=0, le=1024), ReadIf("feedforward", "mlp", "swiglu", "geglu", "moe", "channel-mixing")
    ] = 4.0
    """Width of the feed-forward layer over the width of the stack.

    SwiGLU and GeGLU take 2/3 of it, which makes the same number of parameters."""
    activation: Annotated[ActivationName, ReadIf("feedforward", "mlp", "moe")] = "gelu"
    """Activation function of the MLP and of the experts, such as gelu, gelu-tanh, relu or silu.

    `gelu-tanh` is GPT-2's approximation."""
    norm: Literal["none", "layer", "rms"] = "none"
    """Norm of the blocks: none, layer or rms."""
    norm_placement: Annotated[Literal["pre", "post", "both"], ReadIf("norm", "layer", "rms")] = "pre"
    """Where the norms stand: pre (before each mixer), post (after each residual), or both.

    With both, a norm stands before and behind each mixer and feed-forward layer, inside the residual."""
    norm_epsilon: Annotated[PositiveFloat, ReadIf("norm", "layer", "rms")] = 1e-5
    """Number added to the variance in every norm."""
    residual: bool = False
    """Adds the input of each mixer and feed-forward layer to its output."""
    dropout: Fraction = 0.0
    """Fraction of the outputs of mixers and feed-forward layers that training drops."""
    experts: Annotated[ExpertsConfig, ReadIf("feedforward", "moe")] = ExpertsConfig()
    positions: PositionConfig = PositionConfig()

    @property
    def pattern(self) -> MixerPattern:
        """The names in `mixers`."""
        return parse_pattern(self.mixers)

    @property
    def mixer_names(self) -> tuple[str, ...]:
        """The mixers in `mixers`, each once."""
        return tuple(dict.fromkeys(name for layer in self.pattern for name in layer))


class EncoderStackConfig(StackConfig):
    """A stack that sees the whole row, and how the row becomes one vector."""

    segments: Annotated[int, Field(ge=0, le=MAX_SEGMENTS)] = 0
    """Learned vectors of segments that are added to the embedding (BERT's token types); 0 for none."""
    bidirectional: bool = False
    """Each mixer but attention reads the row in both directions.

    Two mixers of half the width stand side by side; two of the whole width are added where a mixer can't
    change the width."""
    causal: bool = False
    """Each position sees only earlier positions, as in a language model."""
    pooling: Literal["mean", "last", "final-states", "cls"] = "mean"
    """How a row becomes one vector: mean, last, final-states or, for patches, cls.

    `final-states` are the last of the first half and the first of the second half: where the two directions
    of a mixer end. `cls` is a learned vector before the patches that goes through the stack."""


class EncoderConfig(EncoderStackConfig):
    """The section `model.encoder`: the encoder of the source. Some mixers of a decoder read its memory."""

    kind: Annotated[str, Names("encoder", besides=("none",))] = "none"
    """Encoder of the source: none, or a kind such as text, words, ngrams, series, image or patches.

    Of a text: a stack (text), a bag of n-grams (ngrams), or the mixed layers of two stacks that read forward
    and backward (elmo). Of words: the forms and characters of each before the stack (words). Of frames of
    sound: a pyramid of bidirectional LSTMs (pyramid), or strided convolutions before the stack (convolution).
    Of a series: a stack (series), or a named network of 1D convolutions (series-network). Of an image: a
    named network (image), or patches before the stack (patches). Of frames of a clip: a network for each
    before the stack (frames), or convolutions over time, rows and columns (conv3d)."""
    network: Annotated[str, Names("model", checked=False)] = "resnet-20"
    """Network for images, or for series, by its published name."""
    stem: Literal["published", "small"] = "published"
    """First layers of the network: published, or small for images of about 32 pixels.

    The small stem is one convolution that keeps the size of the image."""
    network_activation: Literal["published", ActivationName] = "published"
    """Activation function of the network: published, or another one such as relu."""
    network_norm: Literal["published", "layer", "instance", "group"] = "published"
    """Norm of the network in place of batch norm: published, layer, instance or group.

    The norms are of each image by itself: over all channels, each channel, or groups of channels."""
    patch_size: Size = 4
    """Side of a patch, in pixels."""
    ngram_length: Annotated[int, Field(ge=1, le=32)] = 5
    """Length of the longest n-gram, in tokens."""
    character_width: Size = 32
    """Width of the embedding of a word's characters."""
    character_filters: Size = 100
    """Filters of three characters whose largest outputs describe a word."""
    word_dropout: NonNegativeFloat = 0.25
    """In training a form of words is unknown with probability a / (a + its count); a is this number."""


class HeadConfig(PartSection):
    """The section `model.head`: the head of a task that predicts labels."""

    kind: Annotated[str, Names("head", besides=("default",))] = "default"
    """Head that predicts labels, default for that of the task or of the network."""


class ModelConfig(StackConfig):
    """The section `model`: the stack that the head stands on, and the encoder before the stack."""

    tie_embeddings: bool = False
    """The projection to the vocabulary shares the weights of the embedding."""
    projection_bias: bool = True
    """The projection to the vocabulary has a bias."""
    ngram_lookup: Annotated[int, Field(ge=0, le=64)] = 0
    """Longest n-gram for which a language model is told what followed it before; 0 for none."""
    initialization: str = "default"
    """First weights of hidden layers: default, xavier, kaiming or a standard deviation such as 0.01."""
    head_pooling: Literal["mean", "last", "max", "attention", "encoder"] = "mean"
    """How a classifier pools the memory: mean, last, max, attention or encoder (the encoder's way)."""
    head_fit: Literal["none", "ridge"] = "none"
    """Closed form that the projection of a classifier starts from: none or ridge.

    `ridge` fits the projection to the encoder's features of all training rows before the first step; with
    training.budget=0steps nothing else is trained."""
    head: HeadConfig = HeadConfig()
    encoder: EncoderConfig = EncoderConfig()

    @field_validator("ngram_lookup")
    @classmethod
    def _long_enough(cls, longest: int) -> int:
        if longest == 1:
            raise ValueError("expected 0 for none, or 2 or more tokens")
        return longest

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
