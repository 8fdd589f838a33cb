"""The settings of a training: those that are asked for, over a preset's or a run's."""

import json
from pathlib import Path
from typing import Any

from foveal.config import (
    TASK_ENCODERS,
    Config,
    ModelConfig,
    StackConfig,
    TaskName,
    load_config,
    parse_overrides,
    preset_names,
)
from foveal.core.errors import UserError
from foveal.data.audio.speech import is_audio_folder
from foveal.data.images.image_files import is_image_data
from foveal.data.infer_task import COLUMN_SETTINGS, infer_task
from foveal.data.prepare_examples import split_paths
from foveal.models.image_networks import NETWORKS, published_input
from foveal.models.mixer_settings import with_mixer_settings
from foveal.store.run import Run
from foveal.training.plan import parse_budget
from foveal.ui.console import log

DEFAULT_PRESETS: dict[TaskName, str] = {
    "language-model": "demo",
    "translation": "translation",
    "transduction": "transduction",
    "speech-recognition": "speech-recognition",
    "audio-classification": "audio-classification",
    "text-classification": "text-classification",
    "tagging": "tagging",
    "masked-lm": "masked-lm",
    "series-classification": "series-classification",
    "series-tagging": "series-tagging",
    "image-classification": "image-classification",
    "glimpses": "glimpses",
    "image-generation": "draw",
    "captioning": "captioning",
    "video-classification": "video-classification",
    "frame-tagging": "frame-tagging",
    "video-captioning": "video-captioning",
    "vqa": "vqa",
    "vqa-generate": "vqa-generate",
    "vqa-multiple-choice": "vqa-multiple-choice",
    "navigation": "navigation",
}
"""The preset of a task where none is given."""
PROCESSOR_SETTINGS = (
    "tokenizer",
    "vocab_size",
    "target_tokenizer",
    "shared_vocabulary",
    "sample_rate",
    "mel_bins",
)
"""Settings of what stays with a run's weights: of its task, and the first two of an encoder of texts."""
STACK_WEIGHT_SETTINGS = set(StackConfig.model_fields) - {"dropout"}
"""Settings of any stack on which its weights depend."""
IMAGE_ENCODERS = ("image", "patches", "frames", "conv3d")
"""Encoders of images."""


def load_training_config(
    data: str,
    overrides: tuple[str, ...],
    task: TaskName | None,
    model: str | None,
    base_run: Run | None,
    budget: str | None,
) -> tuple[Config, str]:
    """The settings, and the preset that they are over: the one asked for, else that of the run to begin from,
    else the task's, which is seen from DATA where none is said. A network's name is `image-classification`
    with it."""
    named = _column_settings(overrides)
    if task == "text-classification" and is_image_data(data):
        task = "image-classification"
    elif (
        task == "text-classification" and Path(data).is_dir() and is_audio_folder(split_paths(data)["train"])
    ):
        task = "audio-classification"
    settings = [f"training.budget={budget}"] if budget else []
    settings += [f"task.name={task}"] if task else []
    if model in NETWORKS and model not in preset_names():
        if task not in (None, "image-classification"):
            raise UserError(f"--model {model} labels images; for {task}, set model.encoder.network={model}")
        preset, published = "image-classification", network_overrides(model)
    elif base_run is not None and model is None and _reuses_language_model(base_run, task):
        preset, published = DEFAULT_PRESETS[task or "text-classification"], encoder_overrides(base_run)
    else:
        begun = None if base_run is None else str(base_run.path / "config.toml")
        preset, published = model or begun or DEFAULT_PRESETS[task or infer_task(data, named)], []
    config = load_config(preset, [*published, *overrides, *settings])
    config = with_mixer_settings(config, parse_overrides(overrides))
    parse_budget(config.training.budget)
    read = COLUMN_SETTINGS[config.task.name]
    if unread := [f"data.{name}" for name in named if name not in read]:
        log(f"{', '.join(unread)}: not read, since the task is {config.task.name} (--task)")
    if base_run is not None:
        _check_architecture(base_run, config)
        _check_processor_settings(base_run, config, overrides)
    return config, model or preset


def network_overrides(name: str) -> list[str]:
    """The settings of a network by its own name, for images as it was published for."""
    channels, size, _ = published_input(name)
    image = f"data.image.channels={channels}", f"data.image.size={size}"
    return [f"model.encoder.network={name}", *image]


def _reuses_language_model(base_run: Run, task: TaskName | None) -> bool:
    """Whether a language model is to read texts for another task."""
    return (
        base_run.config.task.name == "language-model" and task is not None and "text" in TASK_ENCODERS[task]
    )


def encoder_overrides(run: Run) -> list[str]:
    """The settings of an encoder that is the run's stack, and of the tokens it reads. What it knows of a text
    lies at its end.

    Raises `UserError` where tokens are one-hot.
    """
    config = run.config
    if config.model.embedding_width == -1:
        raise UserError(
            f"{run.path}: its tokens are one-hot, which leaves no room for the mark that ends a text: train "
            "the language model with model.embedding_width=64, say"
        )
    learned = config.model.positions.kind == "learned"
    longest = [f"data.max_length={config.data.context_length}"] if learned else []
    tokens = f"data.tokenizer={config.data.tokenizer}", f"data.vocab_size={config.data.vocab_size}"
    reading = "kind=text", "causal=true", "bidirectional=false", "pooling=last"
    others = ModelConfig.model_fields.keys() - STACK_WEIGHT_SETTINGS
    stack = config.model.model_dump(exclude=set(others))
    return [
        *longest,
        *tokens,
        "model.head_pooling=last",
        *(f"model.encoder.{setting}" for setting in (*reading, *_as_overrides(stack))),
    ]


def _as_overrides(table: dict[str, Any], before: str = "") -> list[str]:
    """A table as settings."""
    settings: list[str] = []
    for name, value in table.items():
        if isinstance(value, dict):
            settings += _as_overrides(value, f"{before}{name}.")
        else:
            settings.append(f"{before}{name}={json.dumps(value)}")
    return settings


def _column_settings(overrides: tuple[str, ...]) -> dict[str, object]:
    """The settings among them that name columns, without their `data.`."""
    given = parse_overrides(overrides).get("data")
    names = {name for settings in COLUMN_SETTINGS.values() for name in settings}
    return {key: value for key, value in given.items() if key in names} if isinstance(given, dict) else {}


def _check_architecture(base_run: Run, config: Config) -> None:
    """UserError if the weights of `base_run` do not fit: all of them for its own task, else the encoder's."""
    own, old = config.model, base_run.config.model
    same_task = config.task.name == base_run.config.task.name
    if same_task or base_run.config.task.name != "language-model":
        fits = _architecture_settings(own.encoder) == _architecture_settings(old.encoder) and (
            not same_task or _architecture_settings(own) == _architecture_settings(old)
        )
    else:  # the whole of a language model is an encoder
        fits = (
            _architecture_settings(own.encoder).items()
            >= {name: _architecture_settings(old)[name] for name in STACK_WEIGHT_SETTINGS}.items()
        )
    if not fits:
        part, settings = ("model", "model.*") if same_task else ("encoder", "model.encoder.*")
        raise UserError(
            f"{base_run.path}: its {part} is not the one asked for: leave out --model and {settings} settings"
        )
    if _encoder_image_shape(config) != _encoder_image_shape(base_run.config):
        raise UserError(
            f"{base_run.path}: its encoder sees other images: leave out --model and data.image.* settings"
        )


def _check_processor_settings(base_run: Run, config: Config, overrides: tuple[str, ...]) -> None:
    """UserError for a setting of what is kept with the weights of `base_run`: tokens and features are."""
    same_task = config.task.name == base_run.config.task.name
    kept = (
        PROCESSOR_SETTINGS
        if same_task
        else PROCESSOR_SETTINGS[:2]
        if config.model.encoder.kind == "text"
        else ()
    )
    given = parse_overrides(overrides).get("data", {})
    for name in kept:
        if name in given and getattr(config.data, name) != getattr(base_run.config.data, name):
            raise UserError(
                f"{base_run.path}: what data.{name} is for is kept with the weights: leave it out"
            )


def _architecture_settings(stack: StackConfig) -> dict[str, Any]:
    """What a stack's weights depend on, an encoder before it aside."""
    return stack.model_dump(exclude={"dropout", "encoder"})


def _encoder_image_shape(config: Config) -> tuple[int, int]:
    """What of images the weights of an encoder depend on: convolutions and patches go over any size, but
    what is made of a frame are all places of its map."""
    image, kind = config.data.image, config.model.encoder.kind
    return image.channels if kind in IMAGE_ENCODERS else 0, image.size if kind in ("frames", "conv3d") else 0
