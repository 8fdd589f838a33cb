"""The settings of a training: those that are asked for, over a preset's or a run's."""

import json
from pathlib import Path
from typing import Any

from foveal.config import ENCODERS, Config, StackConfig, TaskName, load_config, parse_overrides, preset_names
from foveal.core.errors import UserError
from foveal.data.audio.speech import are_recordings
from foveal.data.images.image_files import is_pictures
from foveal.data.infer_task import NAMING, infer_task
from foveal.data.prepare_examples import part_files
from foveal.models.image_networks import NETWORKS, made_for
from foveal.store.run import Run
from foveal.training.plan import parse_budget
from foveal.ui.console import say

PRESETS: dict[TaskName, str] = {
    "language": "demo",
    "translate": "translate",
    "transduce": "transduce",
    "transcribe": "listen",
    "sounds": "sounds",
    "classify": "classify",
    "tag": "tag",
    "mask": "mask",
    "series": "series",
    "steps": "steps",
    "images": "images",
    "glimpse": "glimpse",
    "draw": "draw",
    "caption": "caption",
    "clips": "clips",
    "frames": "frames",
    "narrate": "narrate",
    "answer": "answer",
    "reply": "reply",
    "choose": "choose",
    "navigate": "navigate",
}
"""The preset of a task where none is given."""
KEPT = ("tokenizer", "vocabulary", "target_tokenizer", "joint", "rate", "bins")
"""Settings of what stays with a run's weights: of its task, and the first two of an encoder of texts."""
STACK = set(StackConfig.model_fields) - {"dropout"}
"""Settings of any stack on which its weights depend."""
SEEING = ("image", "patches", "frames", "volume")
"""Encoders of images."""


def configured(
    data: str,
    overrides: tuple[str, ...],
    task: TaskName | None,
    model: str | None,
    first: Run | None,
    budget: str | None,
) -> tuple[Config, str]:
    """The settings, and the preset that they are over: the one asked for, else that of the run to begin from,
    else the task's, which is seen from DATA where none is said. A network's name is `images` with it."""
    named = _named(overrides)
    if task == "classify" and is_pictures(data):
        task = "images"
    elif task == "classify" and Path(data).is_dir() and are_recordings(part_files(data)["train"]):
        task = "sounds"
    settings = [f"training.budget={budget}"] if budget else []
    settings += [f"task.name={task}"] if task else []
    if model in NETWORKS and model not in preset_names():
        if task not in (None, "images"):
            raise UserError(f"--model {model} labels images; to {task}, set model.encoder.network={model}")
        preset, published = "images", of_network(model)
    elif first is not None and model is None and _reads_on(first, task):
        preset, published = PRESETS[task or "classify"], of_language_model(first)
    else:
        begun = None if first is None else str(first.path / "config.toml")
        preset, published = model or begun or PRESETS[task or infer_task(data, named)], []
    config = load_config(preset, [*published, *overrides, *settings])
    parse_budget(config.training.budget)
    read = NAMING[config.task.name]
    if unread := [f"data.{name}" for name in named if name not in read]:
        say(f"{', '.join(unread)}: not read, since the task is {config.task.name} (--task)")
    if first is not None:
        _check_model(first, config)
        _check_kept(first, config, overrides)
    return config, model or preset


def of_network(name: str) -> list[str]:
    """The settings of a network by its own name, for images as it was published for."""
    channels, size, _ = made_for(name)
    image = f"data.image.channels={channels}", f"data.image.size={size}"
    return [f"model.encoder.network={name}", *image]


def _reads_on(first: Run, task: TaskName | None) -> bool:
    """Whether a language model is to read texts for another task."""
    return first.config.task.name == "language" and task is not None and "text" in ENCODERS[task]


def of_language_model(run: Run) -> list[str]:
    """The settings of an encoder that is the run's stack, and of the tokens it reads. What it knows of a text
    lies at its end.

    Raises `UserError` where tokens are one-hot.
    """
    config = run.config
    if config.model.embedding == -1:
        raise UserError(
            f"{run.path}: its tokens are one-hot, which leaves no room for the mark that ends a text: train "
            "the language model with model.embedding=64, say"
        )
    learned = config.model.positions.kind == "learned"
    longest = [f"data.longest={config.data.context}"] if learned else []
    tokens = f"data.tokenizer={config.data.tokenizer}", f"data.vocabulary={config.data.vocabulary}"
    reading = "kind=text", "causal=true", "bidirectional=false", "summary=last"
    stack = config.model.model_dump(include=STACK)
    return [
        *longest,
        *tokens,
        "model.pooling=last",
        *(f"model.encoder.{setting}" for setting in (*reading, *_written(stack))),
    ]


def _written(table: dict[str, Any], before: str = "") -> list[str]:
    """A table as settings."""
    settings: list[str] = []
    for name, value in table.items():
        if isinstance(value, dict):
            settings += _written(value, f"{before}{name}.")
        else:
            settings.append(f"{before}{name}={json.dumps(value)}")
    return settings


def _named(overrides: tuple[str, ...]) -> dict[str, object]:
    """The settings among them that name columns, without their `data.`."""
    given = parse_overrides(overrides).get("data")
    names = {name for settings in NAMING.values() for name in settings}
    return {key: value for key, value in given.items() if key in names} if isinstance(given, dict) else {}


def _check_model(first: Run, config: Config) -> None:
    """UserError if the weights of `first` do not fit: all of them for its own task, else the encoder's."""
    own, old = config.model, first.config.model
    same_task = config.task.name == first.config.task.name
    if same_task or first.config.task.name != "language":
        fits = _sizes(own.encoder) == _sizes(old.encoder) and (not same_task or _sizes(own) == _sizes(old))
    else:  # the whole of a language model is an encoder
        fits = _sizes(own.encoder).items() >= {name: _sizes(old)[name] for name in STACK}.items()
    if not fits:
        part, settings = ("model", "model.*") if same_task else ("encoder", "model.encoder.*")
        raise UserError(
            f"{first.path}: its {part} is not the one asked for: leave out --model and {settings} settings"
        )
    if _seen(config) != _seen(first.config):
        raise UserError(
            f"{first.path}: its encoder sees other images: leave out --model and data.image.* settings"
        )


def _check_kept(first: Run, config: Config, overrides: tuple[str, ...]) -> None:
    """UserError for a setting of what is kept with the weights of `first`: tokens and features are."""
    same_task = config.task.name == first.config.task.name
    kept = KEPT if same_task else KEPT[:2] if config.model.encoder.kind == "text" else ()
    given = parse_overrides(overrides).get("data", {})
    for name in kept:
        if name in given and getattr(config.data, name) != getattr(first.config.data, name):
            raise UserError(f"{first.path}: what data.{name} is for is kept with the weights: leave it out")


def _sizes(stack: StackConfig) -> dict[str, Any]:
    """What a stack's weights depend on, an encoder before it aside."""
    return stack.model_dump(exclude={"dropout", "encoder"})


def _seen(config: Config) -> tuple[int, int]:
    """What of images the weights of an encoder depend on: convolutions and patches go over any size, but
    what is made of a frame are all places of its map."""
    image, kind = config.data.image, config.model.encoder.kind
    return image.channels if kind in SEEING else 0, image.size if kind in ("frames", "volume") else 0
