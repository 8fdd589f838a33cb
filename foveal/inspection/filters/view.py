"""The view `filters` of a run: the patterns that its first layer responds to in images."""

from dataclasses import dataclass

import numpy as np

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.filters.compute import CAVEAT, IDLE_NORM, Filters, first_layer_filters
from foveal.inspection.filters.pixels import MAX_FILTERS, filter_images, select_filters, weight_scale
from foveal.inspection.panels import Caption, ImageRow, Images, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View
from foveal.models.encoder_registry import reads_pixels
from foveal.objectives.classification import ClassificationObjective

FIGURE_WIDTH, LABELED_COLUMNS = 7.2, 5
"""Inches of the picture; and templates of classes side by side."""


@dataclass(frozen=True)
class FiltersOptions:
    """This view has no options of its own."""


@register_view("filters")
class FiltersView(View[FiltersOptions]):
    summary = "The patterns that the first layer of a run responds to in images."
    Options = FiltersOptions

    def fits(self, run: InspectedRun) -> str:
        if not reads_pixels(run.config.model.encoder):
            return "this view needs an encoder of images, and this run has none"
        if _filters(run) is None:
            network = run.config.model.encoder.network
            return f"no layer has filters for pixels: model.encoder.network={network} learns none"
        return ""

    def compute(
        self, run: InspectedRun, options: FiltersOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        filters = _filters(run)
        assert filters is not None
        labels = tuple(run.objective.labels) if _are_class_templates(run, filters) else None
        return filters_payload(str(run.run.path), filters, labels)


def filters_payload(subject: str, filters: Filters, labels: tuple[str, ...] | None) -> Payload:
    """Return the filters as images. `labels` are the names of the classes, if each filter is the template of
    a class."""
    norms, scale = filters.norms, weight_scale(filters)
    N, C, T, H, W = filters.weights.shape
    size = f"{C} x {H} x {W}" if T == 1 else f"{C} x {T} x {H} x {W}"
    facts = [
        ("layer", filters.layer),
        ("filters" if labels is None else "templates", f"{N:,} of {size}"),
        ("norms", f"from {norms.min():.3g} to {norms.max():.3g}, median {np.median(norms):.3g}"),
        ("idle", f"{filters.idle:,} with a norm below {100 * IDLE_NORM:.0f} % of the largest"),
        ("scale", f"gray is 0, white {scale:.3g}, black {-scale:.3g}"),
    ]
    if N > MAX_FILTERS:
        largest = "the first" if labels is not None else "those of the largest norms"
        facts.append(("drawn", f"{MAX_FILTERS}, {largest}"))
    values = {"run": subject, "layer": filters.layer, "shape": [*filters.weights.shape], "scale": scale}
    values |= {"norms": norms.tolist(), "idle": filters.idle}
    values |= {} if labels is None else {"labels": [*labels]}
    title = f"{filters.layer}: gray is 0, white {scale:.2g}, black {-scale:.2g}"
    panels = (_images(filters, labels),)
    return Payload("filters", subject, title, panels, CAVEAT, "exact", tuple(facts), values)


def _images(filters: Filters, labels: tuple[str, ...] | None) -> Images:
    numbers = select_filters(filters, labels)
    pixels = filter_images(filters)[numbers]
    N, H, W, _ = pixels.shape
    columns = min(N, max(1, round((N * H / W) ** 0.5)) if labels is None else LABELED_COLUMNS)
    tiles = [
        Tile(image, () if labels is None else (Caption(labels[number]),))
        for number, image in zip(numbers, pixels, strict=True)
    ]
    rows = tuple(ImageRow(tuple(tiles[start : start + columns])) for start in range(0, N, columns))
    return Images("", rows, FIGURE_WIDTH / columns, 0.045)


def _filters(run: InspectedRun) -> Filters | None:
    image = run.config.data.image
    return first_layer_filters(run.model, image.channels, image.size)


def _are_class_templates(run: InspectedRun, filters: Filters) -> bool:
    """Return whether each filter is the template of a class: all that the model knows about the class."""
    return isinstance(run.objective, ClassificationObjective) and filters.layer == "head.projection"
