"""The typed sections of a config: everything that makes a run, with its defaults and what may be said."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from foveal.config.data import AugmentConfig, DataConfig, ImageConfig
from foveal.config.model import EncoderConfig, EncoderName, ModelConfig, check_feedforward
from foveal.config.values import Fraction, NonNegativeFloat, PositiveFloat, PositiveInt, StrictModel

TaskName = Literal[
    "language-model",
    "translation",
    "transduction",
    "speech-recognition",
    "audio-classification",
    "text-classification",
    "tagging",
    "masked-lm",
    "series-classification",
    "series-tagging",
    "image-classification",
    "glimpses",
    "image-generation",
    "captioning",
    "video-classification",
    "frame-tagging",
    "video-captioning",
    "vqa",
    "vqa-generate",
    "vqa-multiple-choice",
    "navigation",
]
VQA_TASKS: tuple[TaskName, ...] = ("vqa", "vqa-generate", "vqa-multiple-choice")
"""Questions about images."""
TASK_ENCODERS: dict[TaskName, tuple[EncoderName, ...]] = {
    "language-model": ("none",),
    "translation": ("text",),
    "transduction": ("text",),
    "speech-recognition": ("pyramid", "convolution"),
    "audio-classification": ("pyramid", "convolution"),
    "text-classification": ("text",),
    "tagging": ("text",),
    "masked-lm": ("text",),
    "series-classification": ("series",),
    "series-tagging": ("series",),
    "image-classification": ("image", "patches"),
    "glimpses": ("none",),
    "image-generation": ("none",),
    "captioning": ("image", "patches"),
    "video-classification": ("frames", "conv3d"),
    "frame-tagging": ("frames", "conv3d"),
    "video-captioning": ("frames", "conv3d"),
    "vqa": ("image", "patches"),
    "vqa-generate": ("image", "patches"),
    "vqa-multiple-choice": ("image", "patches"),
    "navigation": ("text",),
}
"""The kinds of encoder that read what a task is given."""


WITHOUT_LABEL_SMOOTHING: dict[TaskName, str] = {
    "language-model": "the score of a language model is its loss",
    "masked-lm": "the score of a language model is its loss",
    "vqa-multiple-choice": "the choices are each row's own",
    "glimpses": "what counts is whether the answer is right",
    "image-generation": "there is no label",
    "navigation": "the moves are those of the path",
}
"""Tasks without label smoothing, and why."""


class TaskConfig(StrictModel):
    name: TaskName = "language-model"
    reduction: Literal["mean", "sum"] = "mean"
    """Loss per token, or summed over each row's chunk (as in min-char-rnn)."""
    loss_positions: Literal["all", "last"] = "all"
    """Where the loss is taken: at every position or only at a window's last."""
    label_smoothing: Fraction = 0.0
    """Share of the probability that the training target spreads over all words (label smoothing)."""
    select_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of each batch of labelled images that is learned: what is hardest for a small network that learns
    beside."""
    supervision: Literal["imitation", "reinforce"] = "imitation"
    """What walks are learnt from: the paths of the data, or where one's own walks end."""


class OptimizerConfig(StrictModel):
    name: Literal["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"] = "adamw"
    lr: PositiveFloat = 2e-3
    weight_decay: NonNegativeFloat = 0.0
    momentum: Fraction = 0.9
    beta1: Fraction = 0.9
    beta2: Fraction = 0.99
    epsilon: PositiveFloat = 1e-8
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """What each layer below the head has of the rate of the layer above it."""
    clip_norm: NonNegativeFloat = 1.0
    """Largest global norm of the gradient; 0 leaves it."""
    clip_value: NonNegativeFloat = 0.0
    """Largest absolute value of each gradient element; 0 leaves it."""


class ScheduleConfig(StrictModel):
    name: Literal["constant", "linear", "cosine", "inverse-sqrt", "one-cycle"] = "linear"
    """After the warm-up the rate is held, then falls as named from `decay_start` to the end; inverse-sqrt
    falls with the root of the step right after the warm-up; one-cycle rises until `decay_start`."""
    warmup_steps: Annotated[int, Field(ge=0)] = 50
    """Steps of linear warm-up."""
    decay_start: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Where the fall begins, as a share of all steps."""
    final_lr_fraction: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The last rate as a share of the highest."""


FreezeName = Literal["none", "norms", "below-last-block", "encoder"]


class TrainingConfig(StrictModel):
    budget: str = "3m"
    """`90s`, `3m`, `2h`, `2000steps`, `5epochs`, `10Mtokens`."""
    seed: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Of the matrix products; auto is bfloat16 where the machine multiplies it in hardware, and a run keeps
    what it was begun with."""
    freeze: FreezeName = "none"
    """What stays as it is while the rest is trained: batch norms with their statistics, all that is below the
    last block too, or the whole encoder."""
    grad_accumulation: PositiveInt = 1
    """Micro-batches added up before each update."""
    evaluate_every: Annotated[int, Field(ge=0)] = 0
    """Steps between evaluations; 0 means about twelve in all."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Evaluations without progress before stopping early; 0 means never."""
    ema_decay: Fraction = 0.0
    """Decay of the exponential moving average of the weights that is evaluated and kept; 0 means none."""
    average_checkpoints: Annotated[int, Field(ge=0)] = 0
    """Evaluations at which the weights are taken whose mean is evaluated and kept: so many last ones; 0 means
    none."""
    checkpoint_seconds: PositiveFloat = 30.0
    """Longest time between checkpoints."""
    max_nonfinite_steps: PositiveInt = 10
    """Refused steps in a row (NaN or infinite) before giving up."""

    @model_validator(mode="after")
    def _one_average(self) -> "TrainingConfig":
        if self.ema_decay and self.average_checkpoints:
            raise ValueError(
                "training.ema_decay and training.average_checkpoints are two means: set one of them to 0"
            )
        return self


class Config(StrictModel):
    """Everything that makes a run, saved in full as `config.toml`."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    task: TaskConfig = TaskConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> "Config":
        _check_stacks(self)
        _check_texts(self)
        _check_images(self)
        _check_objective(self)
        return self


NETWORK_SETTINGS = ("network", "stem", "network_activation", "network_norm")
"""Settings of an encoder that are of a named network for images."""


def _check_encoder(encoder: EncoderConfig) -> None:
    if encoder.kind in ("image", "frames"):
        return
    for name in NETWORK_SETTINGS:
        if getattr(encoder, name) != EncoderConfig.model_fields[name].default:
            raise ValueError(
                f"model.encoder.{name}={getattr(encoder, name)} is of networks for images; with "
                f"model.encoder.kind={encoder.kind} there is none: leave it out"
            )


def _check_stacks(config: Config) -> None:
    model, name = config.model, config.task.name
    check_feedforward("model", model)
    if model.encoder.kind != "none":
        check_feedforward("model.encoder", model.encoder)
    if name in VQA_TASKS:
        check_feedforward("model.question", model.question)
        check_feedforward("model.fusion", model.fusion)
    fitting = TASK_ENCODERS[name]
    if model.encoder.kind not in fitting:
        need = "no encoder" if fitting == ("none",) else "an encoder of what it reads"
        raise ValueError(
            f"task.name={name} needs {need}: take a preset of that task, or set "
            f"model.encoder.kind={' or '.join(fitting)}"
        )
    _check_encoder(model.encoder)
    if model.tie_embeddings and model.embedding_width not in (0, model.width):
        raise ValueError(
            "model.tie_embeddings needs an embedding as wide as the model: set model.embedding_width=0"
        )
    unbalanced = name in ("glimpses", "image-generation", "navigation")
    if unbalanced and "moe" in (model.feedforward, model.encoder.feedforward):
        raise ValueError(f"task.name={name} balances no experts: take another model.feedforward, such as mlp")


def _check_texts(config: Config) -> None:
    data = config.data
    if data.shared_vocabulary and data.target_tokenizer != "same":
        raise ValueError(
            "data.shared_vocabulary is one vocabulary for both sides: leave data.target_tokenizer=same"
        )
    if data.batch_tokens < data.context_length:
        raise ValueError(
            f"data.batch_tokens={data.batch_tokens} is less than one row of "
            f"data.context_length={data.context_length} tokens"
        )
    if data.restart and (config.task.name, data.order) != ("language-model", "streams"):
        raise ValueError("data.restart is of streams of text: set data.restart=0, or data.order=streams")


def _check_images(config: Config) -> None:
    name, encoder, data = config.task.name, config.model.encoder, config.data
    size, patch = data.image.size, encoder.patch_size
    if encoder.kind == "patches" and size % patch:
        raise ValueError(f"data.image.size={size} is not a multiple of model.encoder.patch_size={patch}")
    if data.augment.crop == "reflect-pad" and data.augment.padding >= size:
        raise ValueError(
            f"data.augment.padding={data.augment.padding}: the mirror image of a border of {size} pixels is at "
            f"most {size - 1} wide; lower it, or set data.augment.crop=pad"
        )
    if data.image.tta == "flip-shift" and size == 1:
        raise ValueError("data.image.tta=flip-shift: one pixel has none aside; raise data.image.size")
    viewed = data.image.tta != "none" or data.image.tta_scales != "1"
    several = data.augment.mixup or viewed
    if name in ("captioning", "glimpses", *VQA_TASKS) and several:
        told = {"captioning": "caption", "glimpses": "glimpse"}.get(name, "question")
        raise ValueError(
            f"a {told} is of one view of one image: leave out data.augment.mixup, data.image.tta and "
            "data.image.tta_scales"
        )
    if "conv3d" in TASK_ENCODERS[name] and (data.augment != AugmentConfig() or viewed):
        raise ValueError(
            f"{name} sees the frames of a clip as they are: leave out data.augment.*, "
            "data.image.tta and data.image.tta_scales"
        )
    if name == "navigation" and (data.augment != AugmentConfig() or data.image != ImageConfig()):
        raise ValueError("a walk sees its map as it is: leave out data.augment.* and data.image.*")
    if name == "image-generation" and (several or data.image.channels != 1):
        raise ValueError(
            "a drawing is grey and of one view: set data.image.channels=1, and leave out "
            "data.augment.mixup, data.image.tta and data.image.tta_scales"
        )


def _check_objective(config: Config) -> None:
    task = config.task
    if task.name in WITHOUT_LABEL_SMOOTHING and task.label_smoothing:
        raise ValueError(f"task.label_smoothing: {WITHOUT_LABEL_SMOOTHING[task.name]}; leave it out")
    if task.select_fraction < 1 and task.name != "image-classification":
        raise ValueError(f"task.select_fraction: of labelled images alone, not of {task.name}; leave it out")
    if task.supervision == "reinforce" and task.name != "navigation":
        raise ValueError(f"task.supervision=reinforce: {task.name} walks nowhere; leave it out")
    if task.name != "language-model" and (task.reduction, task.loss_positions) != ("mean", "all"):
        raise ValueError(
            f"task.reduction, task.loss_positions: not of {task.name}, of a language model; leave them out"
        )
    if task.reduction == "sum" and task.loss_positions == "last":
        raise ValueError(
            "task.reduction=sum adds up a chunk's positions; with task.loss_positions=last use mean"
        )
