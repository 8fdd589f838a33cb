"""Checks that a new config fits the weights of the run that the training starts from."""

from typing import Any

from foveal.config import Config, StackConfig, parse_overrides
from foveal.core.errors import UserError
from foveal.models.encoder_registry import encoder_spec, reads_pixels
from foveal.store.run import RunFolder
from foveal.tasks.config import checked
from foveal.tasks.encoder_settings import STACK_WEIGHT_SETTINGS, check_encoder_reuse
from foveal.tasks.registry import task_of
from foveal.tasks.warm_start import reuses_whole_model

PROCESSOR_SETTINGS = (
    "tokenizer",
    "vocab_size",
    "target_tokenizer",
    "shared_vocabulary",
    "sample_rate",
    "mel_bins",
)
"""Settings of processors that belong to a run's weights."""


def check_architecture(base_run: RunFolder, config: Config) -> None:
    """Check that the weights of `base_run` fit: all weights for its own task, the encoder's for other tasks.

    Raises: UserError: the weights do not fit.
    """
    base_config = checked(base_run.config)
    own, old = config.model, base_config.model
    same_task = config.task.name == base_run.config.task.name
    if not same_task:
        check_encoder_reuse(base_run, type(task_of(config)))
    if same_task or not reuses_whole_model(task_of(base_run.config), config):
        fits = _architecture_settings(own.encoder) == _architecture_settings(old.encoder) and (
            not same_task or _architecture_settings(own) == _architecture_settings(old)
        )
    else:  # the run's whole model is the encoder
        fits = (
            _architecture_settings(own.encoder).items()
            >= {name: _architecture_settings(old)[name] for name in STACK_WEIGHT_SETTINGS}.items()
        )
    if not fits and same_task:
        raise UserError(f"{base_run.path}: its model does not fit: leave out --model and model.* settings")
    if not fits:
        raise UserError(
            f"{base_run.path}: its encoder does not fit: leave out --model and model.encoder.* settings, and "
            f"name --task {config.task.name}"
        )
    if _encoder_image_shape(config) != _encoder_image_shape(base_config):
        raise UserError(
            f"{base_run.path}: its encoder reads other images: leave out --model and data.image.* settings"
        )


def check_processor_settings(base_run: RunFolder, config: Config, overrides: tuple[str, ...]) -> None:
    """Check that no override changes a setting of the processors that belong to the weights of `base_run`.

    Raises: UserError: an override changes such a setting.
    """
    task, base_task = task_of(config), task_of(base_run.config)
    of_encoder = {*task.fixed_settings()} & {*base_task.fixed_settings()}
    changed = {
        name
        for name in parse_overrides(overrides).get("data", {})
        if name in PROCESSOR_SETTINGS and getattr(config.data, name) != getattr(base_run.config.data, name)
    }
    for name in sorted(changed):
        if task.name == base_task.name or f"data.{name}" in of_encoder:
            raise UserError(
                f"{base_run.path}: data.{name} belongs to the weights and can't change: leave it out"
            )


def _architecture_settings(stack: StackConfig) -> dict[str, Any]:
    """Return the settings on which the shapes of a stack's weights depend, without those of its encoder."""
    return stack.model_dump(exclude={"dropout", "encoder", "head_fit"})


def _encoder_image_shape(config: Config) -> tuple[int, int]:
    """Return the channels and the size of images on which the shapes of an encoder's weights depend.

    0 means that they do not depend on the size. Convolutions and patches work for any size. Encoders of
    frames use all positions of a frame's feature map.
    """
    image, encoder = config.data.image, config.model.encoder
    has_frames = encoder.kind != "none" and "clip" in encoder_spec(encoder).reads
    return image.channels if reads_pixels(encoder) else 0, image.size if has_frames else 0
