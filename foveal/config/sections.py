"""The typed sections of a config: everything that makes a run, with its defaults and what may be said."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from foveal.config.model import EncoderName, ModelConfig, check_stack
from foveal.config.values import Fraction, NotNegative, Positive, Rate, Size, Strict

TokenizerName = Literal["character", "byte", "bpe", "word", "wordpiece"]


class ImageConfig(Strict):
    """What is seen of an image."""

    size: Size = 32
    """Side of the square, in pixels."""
    channels: Literal[1, 3] = 3
    """Colours, or grey."""
    batch: Positive = 128
    """Images in a batch."""
    views: Literal["centre", "mirrored", "ten"] = "centre"
    """What is seen of a held-out image, and answers averaged over: the centre, with its mirror image, or with
    the four corners as well."""
    scales: str = "1"
    """At which scales: `1`, or several as `1,1.125,1.25`."""

    @field_validator("scales")
    @classmethod
    def _numbers(cls, scales: str) -> str:
        for scale in scales.split(","):
            try:
                fits = 0.01 <= float(scale) <= 100
            except ValueError:
                fits = False
            if not fits:
                raise ValueError("expected numbers from 0.01 to 100, such as 1,1.125,1.25")
        return scales


class AugmentConfig(Strict):
    """How the images to train on are changed, each in another way in each epoch."""

    crop: Literal["none", "shift", "resized"] = "none"
    """Shifted by a few pixels; or cut from 8 % to all of the area and resized (the ResNet recipe)."""
    shift: Size = 4
    """Pixels to each side at most."""
    flip: bool = False
    """Left to right, half of them in one epoch and the others in the next."""
    jitter: Fraction = 0.0
    """Brightness, contrast and saturation, each by a factor in 1 +- jitter."""
    cutout: Annotated[int, Field(ge=0)] = 0
    """Side of a square that is blotted out."""
    mixup: NotNegative = 0.0
    """Images are mixed with others by a share from Beta(mixup, mixup); 0 means none."""


class DataConfig(Strict):
    """How text, sound, series and images become batches."""

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
    question: str = "question"
    """The column of a question about an image."""
    answer: str = "answer"
    """The column of its answer."""
    choices: str = "choices"
    """The column of the answers to choose among, a list, or texts with bars between them."""
    history: str = "history"
    """The column of what was said before, if there is one; `none` leaves it out."""
    joint: bool = False
    """One vocabulary, and one embedding, for source and target."""
    rate: Annotated[int, Field(ge=1000, le=1_000_000)] = 16_000
    """Samples a second that recordings are brought to."""
    bins: Annotated[int, Field(ge=1, le=512)] = 80
    """Mel bands of a frame."""
    seconds: Rate = 60.0
    """Of the longest recording; longer ones are set aside."""
    longest: Size = 256
    """Tokens of a source or target, steps of a series, frames of a clip: longer ones are set aside, longer
    texts to classify are cut."""
    order: Literal["streams", "windows"] = "windows"
    """Contiguous streams with carried state, or random windows."""
    restart: Fraction = 0.0
    """Chance that a stream's state begins anew at a chunk, so that the model stays able to begin."""
    context: Size = 128
    """Tokens in a window, or in a chunk of truncated backpropagation."""
    batch_tokens: Positive = 4096
    """Tokens in a batch: batch_tokens // context rows."""
    image: ImageConfig = ImageConfig()
    augment: AugmentConfig = AugmentConfig()
    valid: Fraction = 0.05
    """Share held out to choose the best weights, where no --valid is given."""
    test: Fraction = 0.05
    """Share held out for the reported figure, where neither --valid nor --test is given."""
    group: str = ""
    """A pattern (of Python's `re`) of what texts about variants of one thing differ in."""
    hold: Literal["groups", "members"] = "groups"
    """What is held out of such things: all variants of some, or every third variant of each."""

    @field_validator("group")
    @classmethod
    def _pattern(cls, group: str) -> str:
        try:
            re.compile(group)
        except re.error as error:
            raise ValueError(f"no pattern that Python's re can read: {error}") from None
        return group


TaskName = Literal[
    "language",
    "translate",
    "transduce",
    "transcribe",
    "classify",
    "tag",
    "mask",
    "series",
    "steps",
    "images",
    "glimpse",
    "draw",
    "caption",
    "clips",
    "frames",
    "narrate",
    "answer",
    "reply",
    "choose",
    "navigate",
]
ASKING: tuple[TaskName, ...] = ("answer", "reply", "choose")
"""Questions about images."""
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
    "images": ("image", "patches"),
    "glimpse": ("none",),
    "draw": ("none",),
    "caption": ("image", "patches"),
    "clips": ("frames", "volume"),
    "frames": ("frames", "volume"),
    "narrate": ("frames", "volume"),
    "answer": ("image", "patches"),
    "reply": ("image", "patches"),
    "choose": ("image", "patches"),
    "navigate": ("text",),
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
    signal: Literal["imitation", "reinforce"] = "imitation"
    """What walks are learnt from: the paths of the data, or where one's own walks end."""


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
    name: Literal["constant", "linear", "cosine", "inverse-sqrt", "one-cycle"] = "linear"
    """After the warm-up the rate is held, then falls as named from `decay_start` to the end; inverse-sqrt
    falls with the root of the step right after the warm-up; one-cycle rises until `decay_start`."""
    warmup: Annotated[int, Field(ge=0)] = 50
    """Steps of linear warm-up."""
    decay_start: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Where the fall begins, as a share of all steps."""
    final: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The last rate as a share of the highest."""


FreezeName = Literal["none", "norms", "below-last-block", "encoder"]


class TrainingConfig(Strict):
    budget: str = "3m"
    """`90s`, `3m`, `2h`, `2000steps`, `5epochs`, `10Mtokens`."""
    seed: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Of the matrix products; auto is bfloat16 where the machine multiplies it in hardware, and a run keeps
    what it was begun with."""
    freeze: FreezeName = "none"
    """What stays as it is while the rest is trained: batch norms with their statistics, all that is below the
    last block too, or the whole encoder."""
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
        if self.task.name in ASKING:
            check_stack("model.question", model.question)
            check_stack("model.joint", model.joint)
        if self.task.name == "choose" and self.task.smoothing:
            raise ValueError("task.smoothing: the choices are each row's own; leave it out")
        fitting = ENCODERS[self.task.name]
        if model.encoder.kind not in fitting:
            need = "no encoder" if fitting == ("none",) else "an encoder of what it reads"
            raise ValueError(
                f"task.name={self.task.name} needs {need}: take a preset of that task, or set "
                f"model.encoder.kind={' or '.join(fitting)}"
            )
        size, patch = data.image.size, model.encoder.patch
        if model.encoder.kind == "patches" and size % patch:
            raise ValueError(f"data.image.size={size} is not a multiple of model.encoder.patch={patch}")
        several = data.augment.mixup or data.image.views != "centre" or data.image.scales != "1"
        if self.task.name in ("caption", "glimpse", *ASKING) and several:
            told = "question" if self.task.name in ASKING else self.task.name
            raise ValueError(
                f"a {told} is of one view of one image: leave out data.augment.mixup, data.image.views and "
                "data.image.scales"
            )
        changed = data.augment != AugmentConfig() or data.image.views != "centre" or data.image.scales != "1"
        if "volume" in fitting and changed:
            raise ValueError(
                f"{self.task.name} sees the frames of a clip as they are: leave out data.augment.*, "
                "data.image.views and data.image.scales"
            )
        balanced = self.task.name not in ("glimpse", "draw", "navigate")
        if not balanced and "experts" in (model.feedforward, model.encoder.feedforward):
            raise ValueError(
                f"task.name={self.task.name} balances no experts: take another model.feedforward, such as mlp"
            )
        if self.task.name == "draw" and (several or data.image.channels != 1):
            raise ValueError(
                "a drawing is grey and of one view: set data.image.channels=1, and leave out "
                "data.augment.mixup, data.image.views and data.image.scales"
            )
        windowless = "attention" in model.mixers and model.attention.window == 0
        if self.task.name == "language" and data.order == "streams" and windowless:
            raise ValueError(
                "attention without a window can't be carried from chunk to chunk: "
                "set model.attention.window, or data.order=windows"
            )
        if self.task.signal == "reinforce" and self.task.name != "navigate":
            raise ValueError(f"task.signal=reinforce: {self.task.name} walks nowhere; leave it out")
        if self.task.name == "navigate" and model.attentive.look == "hard":
            raise ValueError("a walk draws its moves, not where it looks: set model.attentive.look=soft")
        if model.tied and model.embedding not in (0, model.width):
            raise ValueError("model.tied needs an embedding as wide as the model: set model.embedding=0")
        if self.task.loss == "sum" and self.task.positions == "last":
            raise ValueError("task.loss=sum adds up a chunk's positions; with task.positions=last use mean")
        return self
