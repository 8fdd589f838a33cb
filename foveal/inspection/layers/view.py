"""The view `layers` of a run: what each layer of an image network costs, and what it sees."""

from copy import deepcopy
from dataclasses import asdict, dataclass

import numpy as np

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.layers.compute import LayerSummary, summarize_layers
from foveal.inspection.layers.describe import format_shape, forward_logits, layer_rows, total
from foveal.inspection.panels import Axis, Bars, NamedArray, Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

CAVEAT = (
    "multiply-adds and memory are those of one image in a plain forward pass; a fused kernel may keep less, "
    "and time also depends on the machine"
)


@dataclass(frozen=True)
class LayersOptions:
    """This view has no options of its own."""


@register_view("layers")
class LayersView(View[LayersOptions]):
    summary = "The layers of an image network: shapes, parameters, multiply-adds, fields and memory."
    Options = LayersOptions
    depends_on_weights = False

    def fits(self, run: InspectedRun) -> str:
        if run.task.trains_networks:
            return ""
        return f"this view needs a run that labels images (this run's task is {run.task.name})"

    def compute(
        self, run: InspectedRun, options: LayersOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        image = run.config.data.image
        shape = image.channels, image.size, image.size
        layers = summarize_layers(deepcopy(run.model).to("meta"), shape, forward_logits)
        return layers_payload(str(run.run.path), shape, layers)


def layers_payload(subject: str, shape: tuple[int, ...], layers: list[LayerSummary]) -> Payload:
    """Return the parameters and multiply-adds of the layers that multiply, as bars, and a table of all."""
    costly = [layer for layer in layers if layer.multiply_adds]
    head, *rows = layer_rows(layers)
    panels = (
        _bars("parameters", costly, [layer.parameters for layer in costly]),
        _bars("multiply-adds", costly, [layer.multiply_adds for layer in costly]),
        Table("", tuple(head), tuple(map(tuple, rows))),
    )
    sums = {name: total(layers, name) for name in ("parameters", "multiply_adds")}
    facts = (
        ("input", format_shape(shape)),
        *((name.replace("_", "-"), f"{count:,}") for name, count in sums.items()),
    )
    values = {"run": subject, "input": [*shape], **sums, "layers": [*map(asdict, layers)]}
    return Payload("layers", subject, f"Layers of {subject}", panels, CAVEAT, "exact", facts, values)


def _bars(name: str, layers: list[LayerSummary], counts: list[int]) -> Bars:
    labels = tuple(layer.name.removeprefix("encoder.blocks.") for layer in layers)
    return Bars(name, NamedArray(np.array([counts]), (Axis("", (name,)), Axis("layer", labels)), name))
