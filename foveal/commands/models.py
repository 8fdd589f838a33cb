"""`foveal models`: the presets, what they are made of and how large they are."""

from typing import Annotated, Any

import cyclopts
import torch
from cyclopts import Parameter
from rich.table import Table

from foveal.build import kind_of
from foveal.commands.console import OUTPUT, facts_table, result_line
from foveal.config import Config, StackConfig, load_config, preset_names, to_toml

app = cyclopts.App(name="models", help="List the presets, or describe one.")
Json = Annotated[bool, Parameter(negative="")]
CHOOSING = ("classify", "tag", "mask", "series", "steps")
"""Tasks whose head is no decoder."""


@app.default
def list_(*, json: Json = False) -> None:
    """List the presets."""
    rows = {name: _facts(load_config(name)) for name in preset_names()}
    if json:
        result_line(rows)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("preset", "task", "mixers", "layers", "parameters"):
        table.add_column(column, no_wrap=True)
    for name, facts in rows.items():
        table.add_row(name, facts["task"], facts["mixers"], facts["layers"], f"{facts['parameters']:,}")
    OUTPUT.print(table)


@app.command
def describe(name: str, /, *, json: Json = False) -> None:
    """Show preset NAME in full: every setting, and every parameter of the model with its shape."""
    config = load_config(name)
    model = _model(config)
    shapes = {key: list(parameter.shape) for key, parameter in model.named_parameters()}
    if json:
        result_line(_facts(config) | {"config": config.model_dump(), "shapes": shapes})
        return
    print(to_toml(config))
    facts_table([(key, " x ".join(str(size) for size in shape)) for key, shape in shapes.items()], OUTPUT)


def stacks_of(config: Config) -> list[tuple[str, StackConfig]]:
    """The stacks of a model, and what to call them: a model that chooses has none but its encoder."""
    model, encoder = config.model, config.model.encoder
    if encoder.kind == "none":
        return [("", model)]
    if config.task.name in CHOOSING:
        return [("encoder ", encoder)]
    return [("encoder ", encoder), ("decoder ", model)]


def _facts(config: Config) -> dict[str, Any]:
    stacks = [stack for _, stack in stacks_of(config)]
    return {
        "task": config.task.name,
        "mixers": " > ".join(stack.mixers for stack in stacks),
        "layers": " > ".join(str(stack.layers) for stack in stacks),
        "width": " > ".join(str(stack.width) for stack in stacks),
        "parameters": sum(parameter.numel() for parameter in _model(config).parameters()),
        "budget": config.training.budget,
    }


def _model(config: Config) -> torch.nn.Module:
    with torch.device("meta"):
        return kind_of(config).outline(config)
