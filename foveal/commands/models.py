"""`foveal models`: the presets, their components and sizes."""

import re
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, cast

import cyclopts
import torch
from cyclopts import Parameter

from foveal.config import Config, preset_description, preset_names
from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.core.whole_number import WholeNumber
from foveal.inspection.layers.describe import describe_layers
from foveal.models.network_registry import NETWORKS
from foveal.tasks.config import load_config
from foveal.tasks.configure import network_config
from foveal.tasks.read_settings import config_to_toml
from foveal.tasks.registry import task_of
from foveal.ui.console import STDOUT, print_facts, print_json, print_plain

app = cyclopts.App(name="models", help="List the presets, or describe one.")
LAYER_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
"""The number of a layer in the name of a weight."""
Json = Annotated[bool, Parameter(negative="")]


@app.default
def list_presets(*, json: Json = False) -> None:
    """List the presets."""
    rows = {name: _preset_summary(load_config(name)) for name in preset_names()}
    if json:
        print_json(rows)
        return
    columns = ("task", "mixers", "layers")
    shown = [
        {
            "preset": name,
            **{column: facts[column] for column in columns},
            "parameters": f"{facts['parameters']:,}",
        }
        for name, facts in rows.items()
    ]
    STDOUT.print_table(shown, drop=("layers", "parameters", "mixers", "task"))
    names = [name for name in NETWORKS if name not in rows]
    STDOUT.print(f"\nimage networks as published (--model, describe): {', '.join(names)}")


@app.command
def describe(
    name: str,
    /,
    *,
    input_: Annotated[str | None, Parameter(name="--input")] = None,
    classes: WholeNumber | None = None,
    json: Json = False,
) -> None:
    """Show preset NAME: what it is, every setting that is read, and the weights of the model.

    For an image network, named by its preset or by its own name such as resnet-50, show each layer with its
    output, parameters, multiply-adds and receptive field for one image.

    Parameters
    ----------
    input_
        Channels, height and width of the image, such as 3x32x32; if not given, as in the preset or published.
    classes
        The number of classes; if not given, as published, or 10.
    """
    config = load_config(name) if name in preset_names() else network_config(name)
    reads_images = task_of(config).trains_networks
    if not reads_images and (input_ is not None or classes is not None):
        raise UserError(f"{name} reads no images to label: leave out --input and --classes")
    settings = config_to_toml(config)
    about = preset_description(name) if name in preset_names() else "An image network as published."
    description = f"{name}: {about}"
    if reads_images:
        describe_layers(cast(Any, task_of(config)), input_, classes, json, description)
        if not json:
            print_plain(f"\n{settings}")
        return
    model = _meta_model(config)
    shapes = {key: list(parameter.shape) for key, parameter in model.named_parameters()}
    if json:
        print_json(
            {"description": description}
            | _preset_summary(config)
            | {"config": tomllib.loads(settings), "shapes": shapes}
        )
        return
    STDOUT.print_wrapped(f"{description}\n", indent=0)
    print_plain(settings)
    weights = _group_layers(shapes).items()
    print_facts([(names, " x ".join(str(size) for size in shape)) for names, shape in weights], STDOUT)


def _group_layers(shapes: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return weights of several layers that are alike as one, such as `blocks.0,1,2.norm.gain`."""
    layers: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, shape in shapes.items():
        key = (LAYER_NUMBER.sub("{}", name, count=1), tuple(shape))
        layers.setdefault(key, []).extend(LAYER_NUMBER.findall(name)[:1])
    return {name.replace("{}", ",".join(numbers)): [*shape] for (name, shape), numbers in layers.items()}


def _preset_summary(config: Config) -> dict[str, Any]:
    """Return the facts of a preset, those of several components in the order of the model."""
    components = task_of(config).components()
    return {
        "task": config.task.name,
        "mixers": " > ".join(component.mixers for component in components),
        "layers": " > ".join(component.layers for component in components if component.layers),
        "width": " > ".join(component.width for component in components if component.width),
        "parameters": sum(parameter.numel() for parameter in _meta_model(config).parameters()),
        "budget": config.training.budget,
    }


def _meta_model(config: Config) -> torch.nn.Module:
    """Return the model on the meta device, without numbers."""
    with shapes_only():
        return task_of(config).example_model()
