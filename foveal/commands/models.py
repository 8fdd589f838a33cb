"""`foveal models`: the presets, what they are made of and how large they are."""

from typing import Annotated, Any, NamedTuple

import cyclopts
import torch
from cyclopts import Parameter
from rich.table import Table

from foveal.config import VQA_TASKS, Config, EncoderConfig, StackConfig, load_config, preset_names, to_toml
from foveal.core.errors import UserError
from foveal.inspection.layers.view import describe_layers, network_config
from foveal.models.image_networks import NETWORKS
from foveal.models.mixer_settings import with_mixer_settings
from foveal.tasks.session import task_of
from foveal.ui.console import STDOUT, print_facts, print_json

app = cyclopts.App(name="models", help="List the presets, or describe one.")
Json = Annotated[bool, Parameter(negative="")]
TEXT_ENCODER_TASKS = ("text-classification", "tagging", "masked-lm")
ENCODER_ONLY_TASKS = (
    *TEXT_ENCODER_TASKS,
    "audio-classification",
    "series-classification",
    "series-tagging",
    "image-classification",
    "video-classification",
    "frame-tagging",
    "vqa",
    "vqa-multiple-choice",
)
"""Tasks whose head is no decoder."""


class ModelComponent(NamedTuple):
    """A stack of a model, or a network known by its name, which has no settings of a stack."""

    name: str
    mixers: str
    layers: str = ""
    width: str = ""

    def __str__(self) -> str:
        stack = f"{self.layers} x {self.mixers}, width {self.width}" if self.layers else self.mixers
        return f"{self.name} {stack}".strip()


@app.default
def list_presets(*, json: Json = False) -> None:
    """List the presets."""
    rows = {name: _preset_summary(load_config(name)) for name in preset_names()}
    if json:
        print_json(rows)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("preset", "task", "mixers", "layers", "parameters"):
        table.add_column(column, no_wrap=column != "mixers")
    for name, facts in rows.items():
        table.add_row(name, facts["task"], facts["mixers"], facts["layers"], f"{facts['parameters']:,}")
    STDOUT.print(table)
    names = [name for name in NETWORKS if name not in rows]
    STDOUT.print(f"\nnetworks for images, as published (--model, describe): {', '.join(names)}")


@app.command
def describe(
    name: str,
    /,
    *,
    input_: Annotated[str | None, Parameter(name="--input")] = None,
    classes: int | None = None,
    json: Json = False,
) -> None:
    """Show preset NAME in full: every setting, and every parameter of the model with its shape.

    Of a network for images, by its preset or its own name such as resnet-50: each layer with its output,
    parameters, multiply-adds and what a place of it sees, for one image.

    Parameters
    ----------
    input_
        The image's channels, height and width, such as 3x32x32; if not given, as preset or published.
    classes
        How many; if not given, as published, or 10.
    """
    config = with_mixer_settings(load_config(name) if name in preset_names() else network_config(name))
    if config.task.name == "image-classification":
        describe_layers(config, input_, classes, json)
        return
    if input_ is not None or classes is not None:
        raise UserError(f"{name} reads no images to label: leave out --input and --classes")
    model = _meta_model(config)
    shapes = {key: list(parameter.shape) for key, parameter in model.named_parameters()}
    if json:
        print_json(_preset_summary(config) | {"config": config.model_dump(), "shapes": shapes})
        return
    print(to_toml(config))
    print_facts([(key, " x ".join(str(size) for size in shape)) for key, shape in shapes.items()], STDOUT)


def model_components(config: Config) -> list[ModelComponent]:
    """What a model is made of: one that chooses has no stack but its encoder."""
    model, encoder = config.model, config.model.encoder
    if encoder.kind == "none":
        return [_stack_component("", model)]
    reader = _encoder_components(encoder)
    if config.task.name in VQA_TASKS:
        reader += [_stack_component("question", model.question), _stack_component("fusion", model.fusion)]
    return reader if config.task.name in ENCODER_ONLY_TASKS else [*reader, _stack_component("decoder", model)]


def _encoder_components(encoder: EncoderConfig) -> list[ModelComponent]:
    if encoder.kind == "conv3d":
        return [ModelComponent("encoder", "3D convolution", str(encoder.layers), str(encoder.width))]
    network = ModelComponent("encoder", encoder.network)
    if encoder.kind == "frames":
        return [network, _stack_component("then", encoder)]
    return [network if encoder.kind == "image" else _stack_component("encoder", encoder)]


def _stack_component(name: str, stack: StackConfig) -> ModelComponent:
    return ModelComponent(name, stack.mixers, str(stack.layers), str(stack.width))


def _preset_summary(config: Config) -> dict[str, Any]:
    parts = model_components(config)
    return {
        "task": config.task.name,
        "mixers": " > ".join(part.mixers for part in parts),
        "layers": " > ".join(part.layers for part in parts if part.layers),
        "width": " > ".join(part.width for part in parts if part.width),
        "parameters": sum(parameter.numel() for parameter in _meta_model(config).parameters()),
        "budget": config.training.budget,
    }


def _meta_model(config: Config) -> torch.nn.Module:
    with torch.device("meta"):
        return task_of(config).model_of_default_size(config)
