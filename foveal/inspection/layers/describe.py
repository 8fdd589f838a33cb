"""The table of an image network's layers for `foveal models describe`."""

import re
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.encoders.image import ImageEncoder
from foveal.inspection.layers.compute import LayerSummary, summarize_layers
from foveal.inspection.run_protocols import InspectedTask
from foveal.metrics.report import format_table
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_head, published_input
from foveal.ui.console import STDOUT, print_json, print_plain

ImageShape = tuple[int, int, int]


@runtime_checkable
class NetworkTask(InspectedTask, Protocol):
    """A task that trains image networks."""

    @property
    def default_classes(self) -> int: ...

    def with_config(self, config: Config) -> "NetworkTask": ...

    def encoder(self) -> Any: ...

    def model_for_classes(self, encoder: Any, classes: int) -> EncoderWithHead: ...


def describe_layers(
    task: NetworkTask, input_shape: str | None, classes: int | None, json: bool, description: str
) -> None:
    """Print what a model is, and a table of its layers for an image of the shape `input_shape`, such as
    3x32x32.

    Raises: UserError: the shape is not the shape of an image, or does not fit the model.
    """
    config = task.config
    image, encoder = config.data.image, config.model.encoder
    shape = (image.channels, image.size, image.size) if input_shape is None else _parse_shape(input_shape)
    other = image.model_copy(update={"channels": shape[0], "size": shape[1]})
    data = config.data.model_copy(update={"image": other})
    published = (
        encoder.kind == "image" and (image.channels, image.size) == published_input(encoder.network)[:2]
    )
    classes = classes or (published_input(encoder.network)[2] if published else task.default_classes)
    with torch.device("meta"):
        model = _meta_model(task.with_config(config.model_copy(update={"data": data})), shape, classes)
    layers = summarize_layers(model, shape, forward_logits)
    if json:
        sums = {"parameters": total(layers, "parameters"), "multiply_adds": total(layers, "multiply_adds")}
        facts = {"description": description, "input": shape, "classes": classes, **sums}
        print_json(facts | {"layers": [*map(asdict, layers)]})
    else:
        STDOUT.print_wrapped(f"{description}\n", indent=0)
        print_plain(format_table(layer_rows(layers)))


def _meta_model(task: NetworkTask, shape: ImageShape, classes: int) -> EncoderWithHead:
    """Return the model for images of this shape, on the meta device. Named networks also accept
    rectangles."""
    _, rows, columns = shape
    encoder, config = task.encoder(), task.config
    if rows == columns:
        return task.model_for_classes(encoder, classes)
    if not isinstance(encoder, ImageEncoder):
        raise UserError(
            f"--input {format_shape(shape)}: this model reads only square images, such as 3x{rows}x{rows}"
        )
    head = image_head(config.model.encoder.network, encoder, (rows, columns), classes, config.model.dropout)
    return EncoderWithHead(encoder, head)


def forward_logits(model: Any, images: Tensor) -> Tensor:
    """Return the logits of classes, as a classifier of images computes them."""
    memory, _ = model.encoder(images)
    features, _ = model.head(memory)
    logits: Tensor = model.head.project(features)
    return logits


def _parse_shape(input_shape: str) -> ImageShape:
    match = re.fullmatch(r"([13])x([1-9]\d{0,4})x([1-9]\d{0,4})", input_shape)
    if match is None:
        raise UserError(
            f"--input {input_shape}: expected channels (1 or 3), height and width, such as 3x240x320"
        )
    return int(match[1]), int(match[2]), int(match[3])


def layer_rows(layers: list[LayerSummary]) -> list[list[str]]:
    """Return the rows of a table of layers: the names of columns, each layer that changes something, the
    total."""
    head = ["layer", "kind", "output", "parameters", "multiply-adds", "field", "memory"]
    rows, previous = [head], None
    for layer in layers:
        counts, shapes = (layer.parameters, layer.multiply_adds), (layer.output, layer.field)
        if any(counts) or shapes != previous:  # other layers change nothing to be seen: dropout, a shortcut
            sizes = (
                format_shape(layer.output),
                *_format_counts(*counts),
                format_shape(layer.field),
                _format_kilobytes(layer.memory),
            )
            rows.append([layer.name, layer.kind, *sizes])
        previous = shapes
    sums = _format_counts(total(layers, "parameters"), total(layers, "multiply_adds"))
    return [*rows, ["total", "", "", *sums, "", _format_kilobytes(total(layers, "memory"))]]


def total(layers: list[LayerSummary], name: str) -> int:
    """Return the sum of a field over layers."""
    return sum(getattr(layer, name) for layer in layers)


def _format_counts(*counts: int) -> tuple[str, ...]:
    return tuple(f"{count:,}" if count else "" for count in counts)


def format_shape(sides: tuple[int, ...]) -> str:
    """Return a shape as text, such as 3x32x32."""
    return "x".join(map(str, sides))


def _format_kilobytes(count: int) -> str:
    return f"{count / 1000:,.1f} kB"
