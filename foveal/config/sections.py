"""The typed sections of a config that every run has.

The task checks the section `task`, and the settings `data.*` that only this task has.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator, model_validator

from foveal.config.data import DataConfig, DataTable
from foveal.config.model import ModelConfig, check_feedforward
from foveal.config.values import (
    Fraction,
    LearningRate,
    Names,
    NonNegativeFloat,
    PartSection,
    PositiveFloat,
    PositiveInt,
    ReadIf,
    StrictModel,
)


class TaskTable(BaseModel):
    """The section `task` as written: the name of the task, and settings that the task checks."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = ""


DECOUPLED_DECAY = ("adamw", "muon")
"""Optimizers whose weight decay is a share of the learning rate (Loshchilov and Hutter 2019). In others it is
added to the gradient, and so is many times as small."""


class OptimizerConfig(StrictModel):
    """The section `optimizer`."""

    name: Literal["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"] = "adamw"
    """Update rule: sgd, momentum, adagrad, rmsprop, adam, adamw or muon."""
    lr: LearningRate = 2e-3
    """Highest learning rate."""
    weight_decay: NonNegativeFloat = 0.0
    """Weight decay of matrices; decoupled in adamw and muon."""
    momentum: Annotated[Fraction, ReadIf("name", "momentum", "muon")] = 0.9
    """Momentum of the gradient."""
    beta1: Annotated[Fraction, ReadIf("name", "adam", "adamw", "muon")] = 0.9
    """Decay of the gradient's mean; in muon, that of AdamW for parameters that are no matrices."""
    beta2: Annotated[Fraction, ReadIf("name", "rmsprop", "adam", "adamw", "muon")] = 0.99
    """Decay of the squared gradient's mean; in muon, that of AdamW for parameters that are no matrices."""
    epsilon: Annotated[PositiveFloat, ReadIf("name", "adagrad", "rmsprop", "adam", "adamw", "muon")] = 1e-8
    """Number added to the root of the gradient's square (in adagrad inside the root)."""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Learning rate of each layer below the head over that of the layer above."""
    clip_norm: NonNegativeFloat = 1.0
    """Largest global norm of the gradient; 0 for no limit."""
    clip_value: NonNegativeFloat = 0.0
    """Largest absolute value of each element of the gradient; 0 for no limit."""


class ScheduleConfig(StrictModel):
    """The section `schedule`: the learning rate as a function of the step."""

    name: Literal["constant", "linear", "cosine", "inverse-sqrt", "one-cycle"] = "linear"
    """Shape of the decay: constant, linear, cosine, inverse-sqrt or one-cycle.

    After the warm-up the learning rate is constant, then falls from `decay_start` to the end. inverse-sqrt
    falls with the root of the step right after the warm-up; one-cycle rises until `decay_start`."""
    warmup_steps: Annotated[int, Field(ge=0)] = 50
    """Steps of linear warm-up; in a new run at most a tenth of all steps, unless set by the user."""
    decay_start: Annotated[float, Field(ge=0, le=1), ReadIf("name", "linear", "cosine", "one-cycle")] = 0.5
    """Fraction of all steps at which the decay starts."""
    final_lr_fraction: Annotated[
        float, Field(ge=0, le=1), ReadIf("name", "linear", "cosine", "one-cycle")
    ] = 0.0
    """Last learning rate over the highest."""


FreezeName = Literal["none", "norms", "below-last-block", "encoder"]


class TrainingConfig(PartSection):
    """The section `training`, with a section for each callback that has settings."""

    budget: str = "3m"
    """Amount of training, such as 90s, 3m, 2h, 2000steps, 5epochs or 10Mtokens."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the first weights, the batches and all that is drawn."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "float32"
    """Precision of matrix products: auto, float32, bfloat16, or float16 (on GPUs, with loss scaling).

    `auto` is bfloat16 where the machine multiplies it in hardware. A run keeps its first precision."""
    freeze: FreezeName = "none"
    """Weights that are not trained: none, norms, below-last-block or encoder.

    `norms` are batch norms with their statistics, which the other choices hold as well."""
    grad_accumulation: PositiveInt = 1
    """Micro-batches whose gradients are added up before each update."""
    slots: PositiveInt = 1
    """Parts into which each batch is cut, so that several processes can share it."""
    activation_checkpointing: bool = False
    """Compute each block of a stack again in the backward pass, which takes less memory and more time."""
    evaluate_every: Annotated[int, Field(ge=0)] = 0
    """Steps between evaluations; 0 for about twelve in all, fewer if these would outlast the training."""
    keep: Literal["best", "last"] = "best"
    """Weights that a run keeps: best (those of the lowest validation loss) or last."""
    patience: Annotated[int, Field(ge=0), ReadIf("keep", "best")] = 0
    """Evaluations without improvement before training stops early; 0 for never."""
    final_test: bool = True
    """Score the test data (or else the validation data) after training; `foveal evaluate` does so later."""
    statistics: bool = True
    """Measure the outputs and gradients of each layer about 60 times, for `foveal inspect RUN histograms`."""
    ema_decay: Fraction = 0.0
    """Decay of the moving average of the weights that is evaluated and kept; 0 for none."""
    average_checkpoints: Annotated[int, Field(ge=0)] = 0
    """Number of last evaluations whose weights are averaged, evaluated and kept; 0 for none."""
    checkpoint_seconds: PositiveFloat = 30.0
    """Longest time between checkpoints, in seconds."""
    max_nonfinite_steps: PositiveInt = 10
    """Skipped steps in a row (NaN or infinite) before training gives up."""
    callbacks: Annotated[str, Names("callback")] = ""
    """Callbacks that are called with each step and evaluation, by name."""

    @model_validator(mode="after")
    def _one_average(self) -> "TrainingConfig":
        if self.ema_decay and self.average_checkpoints:
            raise ValueError(
                "training.ema_decay and training.average_checkpoints are two means: set one of them to 0"
            )
        return self


class Config(StrictModel):
    """All settings of a run; those that something reads are saved as `config.toml`."""

    data: SerializeAsAny[DataConfig] = DataConfig()
    model: ModelConfig = ModelConfig()
    task: TaskTable = TaskTable()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()

    @field_validator("data", mode="before")
    @classmethod
    def _with_settings_of_a_task(cls, data: Any) -> Any:
        own = isinstance(data, Mapping) and data.keys() - DataConfig.model_fields.keys()
        return DataTable.model_validate(data) if own else data

    @model_validator(mode="after")
    def _parts_fit(self) -> "Config":
        _check_stacks(self.model)
        _check_images(self)
        return self


def _check_stacks(model: ModelConfig) -> None:
    check_feedforward("model", model)
    if model.encoder.kind != "none":
        check_feedforward("model.encoder", model.encoder)
    if model.tie_embeddings and model.embedding_width not in (0, model.width):
        raise ValueError(
            "model.tie_embeddings needs an embedding as wide as the model: set model.embedding_width=0"
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
