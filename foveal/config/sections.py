"""The typed sections of a config that every run has; the section `task` is checked by the task."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from foveal.config.data import DataConfig
from foveal.config.model import EncoderConfig, ModelConfig, check_feedforward
from foveal.config.values import Fraction, NonNegativeFloat, PositiveFloat, PositiveInt, StrictModel


class TaskTable(BaseModel):
    """The section `task` as it was written: the task's name, and settings that the task itself checks."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = ""


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
    task: TaskTable = TaskTable()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> "Config":
        _check_stacks(self.model)
        _check_texts(self.data)
        _check_images(self)
        return self


NETWORK_SETTINGS = ("network", "stem", "network_activation", "network_norm")
"""Settings of an encoder that belong to a named network for images."""


def _check_encoder(encoder: EncoderConfig) -> None:
    if encoder.kind in ("image", "frames"):
        return
    for name in NETWORK_SETTINGS:
        if getattr(encoder, name) != EncoderConfig.model_fields[name].default:
            raise ValueError(
                f"model.encoder.{name}={getattr(encoder, name)} is of networks for images; with "
                f"model.encoder.kind={encoder.kind} there is none: leave it out"
            )


def _check_stacks(model: ModelConfig) -> None:
    check_feedforward("model", model)
    if model.encoder.kind != "none":
        check_feedforward("model.encoder", model.encoder)
    _check_encoder(model.encoder)
    if model.tie_embeddings and model.embedding_width not in (0, model.width):
        raise ValueError(
            "model.tie_embeddings needs an embedding as wide as the model: set model.embedding_width=0"
        )


def _check_texts(data: DataConfig) -> None:
    if data.shared_vocabulary and data.target_tokenizer != "same":
        raise ValueError(
            "data.shared_vocabulary is one vocabulary for both sides: leave data.target_tokenizer=same"
        )
    if data.batch_tokens < data.context_length:
        raise ValueError(
            f"data.batch_tokens={data.batch_tokens} is less than one row of "
            f"data.context_length={data.context_length} tokens"
        )


def _check_images(config: Config) -> None:
    encoder, data = config.model.encoder, config.data
    size, patch = data.image.size, encoder.patch_size
    if encoder.kind == "patches" and size % patch:
        raise ValueError(f"data.image.size={size} is not a multiple of model.encoder.patch_size={patch}")
    if data.augment.crop == "reflect-pad" and data.augment.padding >= size:
        raise ValueError(
            f"data.augment.padding={data.augment.padding}: the mirror image of a border of {size} pixels is "
            f"at most {size - 1} wide; lower it, or set data.augment.crop=pad"
        )
    if data.image.tta == "flip-shift" and size == 1:
        raise ValueError("data.image.tta=flip-shift: one pixel has none aside; raise data.image.size")
