"""`foveal models`: the presets, what they are made of and how large they are."""

from typing import Annotated, Any

import cyclopts
import torch
from cyclopts import Parameter
from rich.table import Table

from foveal.commands.console import OUTPUT, facts_table, result_line
from foveal.config import Config, load_config, preset_names, to_toml
from foveal.models.language import language_model

app = cyclopts.App(name="models", help="List the presets, or describe one.")
Json = Annotated[bool, Parameter(negative="")]
VOCABULARY = 65
"""Sizes are given for this many tokens: the characters of English plays."""


@app.default
def list_(*, json: Json = False) -> None:
    """List the presets."""
    rows = {name: _facts(load_config(name)) for name in preset_names()}
    if json:
        result_line(rows)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("preset", "mixers", "layers", "width", "parameters", "optimizer", "budget"):
        table.add_column(column)
    for name, facts in rows.items():
        cells = (f"{value:,}" if isinstance(value, int) else str(value) for value in facts.values())
        table.add_row(name, *cells)
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


def _facts(config: Config) -> dict[str, Any]:
    model = config.model
    return {
        "mixers": model.mixers,
        "layers": model.layers,
        "width": model.width,
        "parameters": sum(parameter.numel() for parameter in _model(config).parameters()),
        "optimizer": config.optimizer.name,
        "budget": config.training.budget,
    }


def _model(config: Config) -> torch.nn.Module:
    with torch.device("meta"):
        return language_model(config.model, VOCABULARY, config.data.context)
