"""`foveal models describe` of a network for images: what each layer makes of one of them."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from foveal.config import Config, load_config, nearest, preset_names
from foveal.core.errors import UserError
from foveal.encoders.image import ImageEncoder
from foveal.inspection.layers.compute import Layer, layers_of
from foveal.metrics.report import aligned
from foveal.models.encoder import Encoded
from foveal.models.image_networks import NETWORKS, image_head, made_for
from foveal.tasks.configure import of_network
from foveal.tasks.image_classification import ImageKind
from foveal.ui.console import result_line

Shape = tuple[int, int, int]


def network_config(name: str, settings: Sequence[str] = ()) -> Config:
    """The preset `images` with a network by its own name, for images as it was published for, and `settings`
    over it."""
    if name not in NETWORKS:
        known = nearest(name, sorted({*preset_names(), *NETWORKS}))
        raise UserError(f"unknown preset or network '{name}'{known}")
    return load_config("images", [*of_network(name), *settings])


def describe_layers(config: Config, given: str | None, classes: int | None, json: bool) -> None:
    """Print a table of the layers for one image of the shape that is `given`, such as 3x32x32."""
    image, encoder = config.data.image, config.model.encoder
    shape = (image.channels, image.size, image.size) if given is None else _shape(given)
    seen = image.model_copy(update={"channels": shape[0], "size": shape[1]})
    config = config.model_copy(update={"data": config.data.model_copy(update={"image": seen})})
    published = encoder.kind == "image" and (image.channels, image.size) == made_for(encoder.network)[:2]
    classes = classes or (made_for(encoder.network)[2] if published else ImageKind.usual)
    with torch.device("meta"):
        model = _model(config, shape, classes)
    layers = layers_of(model, shape, _answer)
    if json:
        sums = {"parameters": _sum(layers, "parameters"), "multiply_adds": _sum(layers, "multiply_adds")}
        found = {"input": shape, "classes": classes, **sums, "layers": [asdict(layer) for layer in layers]}
        result_line(found)
    else:
        print(_table(layers))


def _model(config: Config, shape: Shape, classes: int) -> Encoded:
    """The model that is trained on such images; one of a network by name also for others than squares."""
    kind, (_, rows, columns) = ImageKind(), shape
    encoder, reader = kind.encoder(config), config.model.encoder
    if rows == columns:
        return kind.of_classes(config, encoder, classes)
    if not isinstance(encoder, ImageEncoder):
        raise UserError(f"--input {_times(shape)}: patches are of square images: 3x{rows}x{rows}")
    head = image_head(reader.network, encoder, (rows, columns), classes, config.model.dropout)
    return Encoded(encoder, head)


def _answer(model: Any, images: Tensor) -> Tensor:
    memory, _ = model.encoder(images)
    features, _ = model.head(memory)
    logits: Tensor = model.head.project(features)
    return logits


def _shape(given: str) -> Shape:
    found = re.fullmatch(r"([13])x([1-9]\d{0,4})x([1-9]\d{0,4})", given)
    if found is None:
        raise UserError(f"--input {given}: expected channels (1 or 3), height and width, as 3x240x320")
    return int(found[1]), int(found[2]), int(found[3])


def _table(layers: list[Layer]) -> str:
    head = ["layer", "kind", "output", "parameters", "multiply-adds", "sees", "memory"]
    rows, before = [head], None
    for layer in layers:
        counts, made = (layer.parameters, layer.multiply_adds), (layer.output, layer.field)
        if any(counts) or made != before:  # else it is one that changes no shape: dropout, a shortcut
            sizes = _times(layer.output), *_numbers(*counts), _times(layer.field), _size(layer.memory)
            rows.append([layer.name, layer.kind, *sizes])
        before = made
    sums = _numbers(_sum(layers, "parameters"), _sum(layers, "multiply_adds"))
    return aligned([*rows, ["in all", "", "", *sums, "", _size(_sum(layers, "memory"))]])


def _sum(layers: list[Layer], name: str) -> int:
    return sum(getattr(layer, name) for layer in layers)


def _numbers(*counts: int) -> tuple[str, ...]:
    return tuple(f"{count:,}" if count else "" for count in counts)


def _times(sides: tuple[int, ...]) -> str:
    return "x".join(map(str, sides))


def _size(count: int) -> str:
    return f"{count / 1000:,.1f} kB"
