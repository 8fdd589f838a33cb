"""The view `units` of a run: the images that most activate the units of a deeper layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, iterate_batches, no_progress
from foveal.data.core.split_data import SplitData, evenly_spaced
from foveal.data.images.image_examples import ImageExamples
from foveal.encoders.image import ImageEncoder
from foveal.inspection.filters.compute import first_layer_filters
from foveal.inspection.image_queries import with_center_crop
from foveal.inspection.panels import ImageRow, Images, Panel, Table, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun, held_out_examples
from foveal.inspection.units.compute import (
    CAVEAT,
    GuidedSignals,
    UnitResponse,
    feature_maps,
    guided_signals,
    mean_correlation,
    top_responses,
)
from foveal.inspection.view import View
from foveal.training.protocols import Batches

UNITS_SHOWN, IMAGES_PER_UNIT = 8, 5
"""Units of a layer, and images of each, that are shown."""
COLUMN_TITLES = ("strongest responses", "guided backpropagation", "the same, the layer's weights random")
PATCH_SIZE = 0.52
"""Inches of a patch."""


@dataclass(frozen=True)
class UnitsOptions:
    data: str | None = None
    """Other images than the run's held-out part."""
    layer: str | None = None
    """The layer's name, such as encoder.blocks.4; the block in the middle if not given."""


@dataclass(frozen=True)
class UnitsResult:
    run: str
    split: str
    layer: str
    count: int
    """The number of units of the layer."""
    responses: dict[int, list[UnitResponse]]
    """The strongest responses of the shown units."""
    signals: GuidedSignals
    """The signals of all responses, in order."""
    images: SplitData[ImageExamples]

    @property
    def control(self) -> float | None:
        return mean_correlation(self.signals)

    def to_json(self) -> dict[str, Any]:
        windows, rows = iter(self.signals.windows), list[dict[str, Any]]()
        for unit, responses in self.responses.items():
            for response in responses:
                source, label = self.images.sources[response.row], self.images.references[response.row]
                image = {"unit": unit, "source": source, "label": label}
                rows.append(image | {"value": response.value, "window": next(windows)._asdict()})
        layer = {"layer": self.layer, "units": self.count, "control": self.control}
        return {"run": self.run, "split": self.split} | layer | {"responses": rows}

    def payload(self) -> Payload:
        """Return patches, signals and controls side by side, and a table of the responses."""
        groups = zip(*self._patches(), strict=True)
        panels: list[Panel] = [
            Images(title, tuple(rows), PATCH_SIZE, 0.02)
            for title, rows in zip(COLUMN_TITLES, groups, strict=True)
        ]
        facts = [("layer", f"{self.layer}, {len(self.responses)} of its {self.count:,} units")]
        if self.control is not None:
            text = f"correlation {self.control:.2f} with the same through a layer of random weights"
            facts.append(("control", text))
        title = f"{self.layer} of {self.run}, {self.split} images"
        shown = (*panels, self._table())
        return Payload("units", self.run, title, shown, CAVEAT, "approximated", tuple(facts), self.to_json())

    def _table(self) -> Table:
        rows = []
        for unit, responses in self.responses.items():
            labels = ", ".join(self.images.references[response.row] for response in responses)
            rows.append((str(unit), f"{responses[0].value:.3g}", f"to {responses[-1].value:.3g}", labels))
        return Table("", ("unit", "largest", "", "images with the largest responses"), tuple(rows))

    def _patches(self) -> Iterator[tuple[ImageRow, ImageRow, ImageRow]]:
        """Yield, for each shown unit, its patches, their signals and their controls."""
        signals = zip(*self.signals, strict=True)
        for unit, responses in self.responses.items():
            tiles: tuple[list[Tile], ...] = [], [], []
            for response, (guided, control, window) in zip(responses, signals, strict=False):
                rows, columns = slice(window.top, window.bottom), slice(window.left, window.right)
                pixels = self.images.examples.center_crop(response.row)[rows, columns]
                parts = (signal_to_pixels(signal[:, rows, columns].numpy()) for signal in (guided, control))
                for group, part in zip(tiles, (pixels, *parts), strict=True):
                    group.append(Tile(part))
            first, guided_tiles, control_tiles = map(tuple, tiles)
            yield ImageRow(first, f"unit {unit}"), ImageRow(guided_tiles), ImageRow(control_tiles)


def signal_to_pixels(signal: Float[np.ndarray, "C h w"]) -> UInt8[np.ndarray, "h w C"]:
    """Return the signal as pixels: gray is 0, and the largest absolute value is white or black."""
    largest = float(np.abs(signal).max()) or 1.0
    levels: UInt8[np.ndarray, "h w C"] = np.round(127.5 + 127.5 * signal / largest).astype(np.uint8)
    return levels.transpose(1, 2, 0)


@register_view("units")
class UnitsView(View[UnitsOptions]):
    summary = "The images that activate the units of a deeper layer most."
    Options = UnitsOptions
    progress = "images read"

    def fits(self, run: InspectedRun) -> str:
        image, encoder = run.config.data.image, getattr(run.model, "encoder", None)
        learned = first_layer_filters(run.model, image.channels, image.size) is not None
        has_blocks = isinstance(encoder, ImageEncoder) and len(encoder.blocks) > 0
        fitting = run.task.trains_networks and has_blocks and learned
        return "" if fitting else "this view needs an image network with trained convolutions"

    def compute(
        self, run: InspectedRun, options: UnitsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        task, model = with_center_crop(run.task), run.model
        layer = options.layer or f"encoder.blocks.{len(model.encoder.blocks) // 2}"
        image = run.config.data.image
        count = _count_units(run, layer, torch.zeros(1, image.channels, image.size, image.size))
        part, split = held_out_examples(run, options.data, log)
        batches = task.example_batches(part.examples)
        units = evenly_spaced(count, UNITS_SHOWN)
        strongest = top_responses(model, layer, units, batches, IMAGES_PER_UNIT, progress)
        by_unit = dict(zip(units, strongest, strict=True))
        responses = [(unit, response) for unit in units for response in by_unit[unit]]
        examples = part.examples.subset([response.row for _, response in responses])
        inputs = _model_inputs(task.example_batches(examples)).to(_device(run))
        numbers, positions = [unit for unit, _ in responses], [response.position for _, response in responses]
        signals = guided_signals(model, layer, inputs, numbers, positions)
        return UnitsResult(str(run.run.path), split, layer, count, by_unit, signals, part).payload()


def _count_units(run: InspectedRun, layer: str, image: Tensor) -> int:
    """Return the number of a layer's units, from the feature maps of any image (1, C, H, W).

    Raises: UserError: there is no such layer, or its output is not a feature map.
    """
    names = ", ".join(f"encoder.blocks.{number}" for number in range(len(run.model.encoder.blocks)))
    if layer not in dict(run.model.named_modules()):
        raise UserError(f"--layer {layer}: {run.run.path} has no such layer; its blocks are {names}")
    try:
        with torch.inference_mode():
            return feature_maps(run.model, layer, image.to(_device(run))).shape[1]
    except ValueError as error:
        raise UserError(f"--layer {error}; choose one of {names}") from None


def _device(run: InspectedRun) -> torch.device:
    device: torch.device = next(run.model.parameters()).device
    return device


def _model_inputs(batches: Batches) -> Tensor:
    """Return the images as the model gets them, row by row."""
    inputs: dict[int, Tensor] = {}
    for batch in iterate_batches(batches, no_progress):
        inputs |= dict(zip(batch.rows.tolist(), batch.columns["source"], strict=True))
    return torch.stack([inputs[row] for row in sorted(inputs)])
