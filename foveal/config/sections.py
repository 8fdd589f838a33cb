"""The typed sections of a config: everything that makes a run, with its defaults and what may be said."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

LARGEST = 1 << 20
"""Of all sizes: what is larger is a slip."""

Positive = Annotated[int, Field(gt=0)]
Size = Annotated[int, Field(gt=0, le=LARGEST)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, coerce_numbers_to_str=True)


TokenizerName = Literal["character", "byte", "bpe", "word", "wordpiece"]


class DataConfig(Strict):
    """How text becomes batches of tokens."""

    tokenizer: TokenizerName = "character"
    vocabulary: Annotated[int, Field(ge=257, le=65536)] = 4096
    """Size of a BPE vocabulary (the other tokenizers find their own)."""
    target_tokenizer: Literal["same", "character", "byte", "bpe", "word"] = "same"
    """Of the target of a pair, if another kind."""
    column: str = "text"
    """The column of a table that holds the text."""
    source: str = "source"
    """The column of the sentence to translate."""
    target: str = "target"
    """The column of its translation."""
    label: str = "label"
    """The column of a text's label."""
    tags: str = "upos"
    """The column of the tags in CoNLL-U; other tables have their tags last, or under `tags`."""
    joint: bool = False
    """One vocabulary, and one embedding, for source and target."""
    rate: Annotated[int, Field(ge=1000, le=1_000_000)] = 16_000
    """Samples a second that recordings are brought to."""
    bins: Annotated[int, Field(ge=1, le=512)] = 80
    """Mel bands of a frame."""
    seconds: Rate = 60.0
    """Of the longest recording; longer ones are set aside."""
    longest: Size = 256
    """Tokens of a source or target, steps of a series: longer ones are set aside, longer texts to classify
    are cut."""
    order: Literal["streams", "windows"] = "windows"
    """Contiguous streams with carried state, or random windows."""
    restart: Fraction = 0.0
    """Chance that a stream's state begins anew at a chunk, so that the model stays able to begin."""
    context: Size = 128
    """Tokens in a window, or in a chunk of truncated backpropagation."""
    batch_tokens: Positive = 4096
    """Tokens in a batch: batch_tokens // context rows."""
    valid: Fraction = 0.05
    """Share held out to choose the best weights, where no --valid is given."""
    test: Fraction = 0.05
    """Share held out for the reported figure, where neither --valid nor --test is given."""


class AttentionConfig(Strict):
    heads: Size = 4
    window: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    """Keys a query sees, itself included; 0 means all before it."""


class RecurrentConfig(Strict):
    nonlinearity: Literal["tanh", "relu"] = "tanh"
    """The Elman network's."""
    reset: Literal["before", "after"] = "after"
    """The GRU's reset gate multiplies before the recurrent product (Cho) or after it (cuDNN, torch)."""
    learned_start: bool = False


class ConvolutionConfig(Strict):
    kernel: Size = 3
    """Inputs that an output sees."""
    dilations: str = "1"
    """Steps from one of them to the next, a pattern repeated over the layers: `1,2,4,8`."""

    @field_validator("dilations")
    @classmethod
    def _numbers(cls, pattern: str) -> str:
        for step in pattern.split(","):
            if not (step.strip().isdecimal() and 1 <= int(step) <= LARGEST):
                raise ValueError(f"expected numbers from 1 to {LARGEST}, such as 1,2,4,8")
        return pattern


class S5Config(Strict):
    states: Size = 64
    """Complex states, half of as many conjugate pairs."""
    blocks: Size = 4
    """Blocks of the first state matrix, each a HiPPO matrix of its own."""


class MambaConfig(Strict):
    expansion: Size = 2
    """Inner width over the model's."""
    states: Size = 16
    """States of each inner channel."""
    kernel: Size = 4
    """Inputs that the short convolution sees."""


class ExpertsConfig(Strict):
    count: Size = 8
    active: Size = 2
    """Experts that each vector is sent to."""
    balance: NotNegative = 0.01
    """Coefficient of the load balance in the objective."""


class PositionConfig(Strict):
    kind: Literal["none", "rotary", "learned", "sinusoidal"] = "none"
    join: Literal["add", "concatenate"] = "add"


class StackConfig(Strict):
    """What comes in, and a stack of blocks."""

    mixers: str = "lstm"
    """Pattern of mixers, repeated over the layers: `lstm`, `lstm,attention`; `attention+cross` are two in a
    layer, one after the other."""
    layers: Size = 2
    width: Size = 256
    embedding: Annotated[int, Field(ge=-1, le=LARGEST)] = 0
    """Width of the embedding: 0 is the model's width, -1 is one-hot."""
    embedding_norm: bool = False
    """A norm of what comes in: behind the embedding (RWKV's), or behind added positions (BERT's)."""
    feedforward: Literal["none", "mlp", "swiglu", "highway", "experts", "channel-mixing"] = "none"
    expansion: Annotated[float, Field(gt=0, le=1024)] = 4.0
    """Width of the feed-forward layer over the model's (SwiGLU takes 2/3 of it: same parameters)."""
    activation: Literal["gelu", "gelu-tanh", "relu"] = "gelu"
    """Of the MLP and the experts; gelu-tanh is GPT-2's approximation."""
    norm: Literal["none", "layer", "rms"] = "none"
    norm_place: Literal["pre", "post"] = "pre"
    norm_epsilon: Rate = 1e-5
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


EncoderName = Literal["none", "text", "pyramid", "convolution", "vectors"]


class EncoderConfig(StackConfig):
    """What makes a memory of the source; a decoder reads it by `cross` or `attentive` mixers."""

    kind: EncoderName = "none"
    """Text; vectors of measured series; or frames of sound: a pyramid of bidirectional LSTMs (of the settings
    here it has width, layers and dropout), or strided convolutions before the stack."""
    bidirectional: bool = False
    """Each mixer but attention becomes two, one on the reversed row: of half the width, outputs side by
    side, or of the whole width and added where a mixer can't change its width."""
    summary: Literal["mean", "last", "ends"] = "mean"
    """The one vector of a memory: the mean, the last, or the last of the first half and the first of the
    second (where a bidirectional mixer's two directions end)."""


class AttentiveConfig(Strict):
    """A recurrent decoder's cell, and how it reads the memory."""

    cell: Literal["rnn", "lstm", "gru"] = "gru"
    score: Literal["summary", "additive", "dot", "scaled", "general"] = "additive"
    """How a state and a vector of the memory are compared; summary does not attend (the bottleneck)."""


class ModelConfig(StackConfig):
    """The stack that the head stands on, and the encoder before it, if any."""

    tied: bool = False
    """The projection to the vocabulary shares the embedding's table."""
    projection_bias: bool = True
    attentive: AttentiveConfig = AttentiveConfig()
    pooling: Literal["mean", "last", "max", "attention"] = "mean"
    """How a classifier makes one vector of the memory's."""
    encoder: EncoderConfig = EncoderConfig()


TaskName = Literal[
    "language", "translate", "transduce", "transcribe", "classify", "tag", "mask", "series", "steps"
]
ENCODERS: dict[TaskName, tuple[EncoderName, ...]] = {
    "language": ("none",),
    "translate": ("text",),
    "transduce": ("text",),
    "transcribe": ("pyramid", "convolution"),
    "classify": ("text",),
    "tag": ("text",),
    "mask": ("text",),
    "series": ("vectors",),
    "steps": ("vectors",),
}
"""The kinds of encoder that read what a task is given."""


class TaskConfig(Strict):
    name: TaskName = "language"
    loss: Literal["mean", "sum"] = "mean"
    """Loss per token, or summed over each row's chunk (as in min-char-rnn)."""
    positions: Literal["all", "last"] = "all"
    """Where the loss is taken: at every position or only at a window's last."""
    smoothing: Fraction = 0.0
    """Share of the probability that the training target spreads over all words (label smoothing)."""


class OptimizerConfig(Strict):
    name: Literal["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"] = "adamw"
    rate: Rate = 2e-3
    weight_decay: NotNegative = 0.0
    momentum: Fraction = 0.9
    beta1: Fraction = 0.9
    beta2: Fraction = 0.99
    epsilon: Rate = 1e-8
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """What each layer below the head has of the rate of the layer above it."""
    clip_norm: NotNegative = 1.0
    """Largest global norm of the gradient; 0 leaves it."""
    clip_value: NotNegative = 0.0
    """Largest absolute value of each gradient element; 0 leaves it."""


class ScheduleConfig(Strict):
    name: Literal["constant", "linear", "cosine", "inverse-sqrt"] = "linear"
    """After the warm-up the rate is held, then falls as named from `decay_start` to the end; inverse-sqrt
    falls with the root of the step right after the warm-up."""
    warmup: Annotated[int, Field(ge=0)] = 50
    """Steps of linear warm-up."""
    decay_start: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Where the fall begins, as a share of all steps."""
    final: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The last rate as a share of the highest."""


class TrainingConfig(Strict):
    budget: str = "3m"
    """`90s`, `3m`, `2h`, `2000steps`, `5epochs`, `10Mtokens`."""
    seed: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Of the matrix products; auto is bfloat16 where the machine multiplies it in hardware, and a run keeps
    what it was begun with."""
    freeze: Literal["none", "encoder"] = "none"
    """What stays as it is while the rest is trained."""
    accumulate: Positive = 1
    """Micro-batches added up before each update."""
    evaluate_every: Annotated[int, Field(ge=0)] = 0
    """Steps between evaluations; 0 means about twelve in all."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Evaluations without progress before stopping early; 0 means never."""
    average: Fraction = 0.0
    """Decay of the exponential moving average of the weights that is evaluated and kept; 0 means none."""
    checkpoint_seconds: Rate = 30.0
    """Longest time between checkpoints."""
    bad_steps: Positive = 10
    """Refused steps in a row (NaN or infinite) before giving up."""


class Config(Strict):
    """Everything that makes a run, saved in full as `config.toml`."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    task: TaskConfig = TaskConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> "Config":
        model, data = self.model, self.data
        if data.joint and data.target_tokenizer != "same":
            raise ValueError("data.joint is one vocabulary for both sides: leave data.target_tokenizer=same")
        if data.batch_tokens < data.context:
            raise ValueError(
                f"data.batch_tokens={data.batch_tokens} is less than one row of "
                f"data.context={data.context} tokens"
            )
        check_stack("model", model)
        if model.encoder.kind != "none":
            check_stack("model.encoder", model.encoder)
        fitting = ENCODERS[self.task.name]
        if model.encoder.kind not in fitting:
            need = "no encoder" if fitting == ("none",) else "an encoder of what it reads"
            raise ValueError(
                f"task.name={self.task.name} needs {need}: take a preset of that task, or set "
                f"model.encoder.kind={' or '.join(fitting)}"
            )
        windowless = "attention" in model.mixers and model.attention.window == 0
        if self.task.name == "language" and data.order == "streams" and windowless:
            raise ValueError(
                "attention without a window can't be carried from chunk to chunk: "
                "set model.attention.window, or data.order=windows"
            )
        if model.tied and model.embedding not in (0, model.width):
            raise ValueError("model.tied needs an embedding as wide as the model: set model.embedding=0")
        if self.task.loss == "sum" and self.task.positions == "last":
            raise ValueError("task.loss=sum adds up a chunk's positions; with task.positions=last use mean")
        return self


def check_stack(name: str, stack: StackConfig) -> None:
    """Raise ValueError for sizes of a stack that don't divide, or leave nothing."""
    heads, experts = stack.attention.heads, stack.experts
    if any(mixer in stack.mixers for mixer in ("attention", "cross")):
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
    if stack.feedforward == "experts" and experts.active > experts.count:
        raise ValueError(
            f"{name}.experts.active={experts.active} is more than {name}.experts.count={experts.count}"
        )
    if "s5" in stack.mixers and stack.s5.states % stack.s5.blocks:
        raise ValueError(
            f"{name}.s5.states={stack.s5.states} is not a multiple of {name}.s5.blocks={stack.s5.blocks}"
        )
