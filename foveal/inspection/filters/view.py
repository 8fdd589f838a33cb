"""The view `filters` of a run: the patterns that its first layer responds to in images."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.base import Facts, InspectedRun, View
from foveal.inspection.filters.compute import CAVEAT, IDLE_NORM, Filters, first_layer_filters
from foveal.inspection.filters.plot import MAX_FILTERS, plot_filters, weight_scale
from foveal.inspection.registry import register_view
from foveal.models.encoder_registry import reads_pixels
from foveal.objectives.classification import ClassificationObjective


@dataclass(frozen=True)
class FiltersOptions:
    """This view has no options of its own."""


@dataclass(frozen=True)
class FiltersResult:
    run: str
    filters: Filters
    labels: tuple[str, ...] | None
    """The names of the classes, if each filter is the template of a class."""

    def to_json(self) -> dict[str, Any]:
        facts = {"run": self.run, "layer": self.filters.layer, "shape": list(self.filters.weights.shape)}
        norms = {"norms": self.filters.norms.tolist(), "idle": self.filters.idle}
        classes = {} if self.labels is None else {"labels": list(self.labels)}
        return facts | {"scale": weight_scale(self.filters)} | norms | classes

    def sections(self) -> Iterator[Facts]:
        filters, norms, scale = self.filters, self.filters.norms, weight_scale(self.filters)
        N, C, T, H, W = filters.weights.shape
        size = f"{C} x {H} x {W}" if T == 1 else f"{C} x {T} x {H} x {W}"
        median = f"median {np.median(norms):.3g}"
        facts = [
            ("layer", filters.layer),
            ("filters" if self.labels is None else "templates", f"{N:,} of {size}"),
            ("norms", f"from {norms.min():.3g} to {norms.max():.3g}, {median}"),
            ("idle", f"{filters.idle:,} with a norm below {100 * IDLE_NORM:.0f} % of the largest"),
            ("scale", f"gray is 0, white {scale:.3g}, black {-scale:.3g}"),
            ("caveat", CAVEAT),
        ]
        if N > MAX_FILTERS:
            largest = "the first" if self.labels is not None else "those of the largest norms"
            facts.append(("drawn", f"{MAX_FILTERS}, {largest}"))
        yield facts


@register_view
class FiltersView(View[FiltersOptions, FiltersResult]):
    name = "filters"
    summary = "The patterns that the first layer of a run responds to in images."
    Options = FiltersOptions

    def check(self, run: InspectedRun) -> None:
        if not reads_pixels(run.config.model.encoder):
            raise UserError(f"{run.run.path}: this view needs an encoder of images, and this run has none")

    def compute(
        self, run: InspectedRun, options: FiltersOptions, log: Log, progress: ProgressCallback
    ) -> FiltersResult:
        path, image, network = run.run.path, run.config.data.image, run.config.model.encoder.network
        filters = first_layer_filters(run.model, image.channels, image.size)
        if filters is None:
            raise UserError(
                f"{path}: no layer has filters for pixels: model.encoder.network={network} learns none; its "
                f"features are in: foveal inspect {path} activations"
            )
        labels = tuple(run.objective.labels) if _are_class_templates(run, filters) else None
        return FiltersResult(str(path), filters, labels)

    def plot(self, result: FiltersResult) -> bytes:
        scale = weight_scale(result.filters)
        title = f"{result.filters.layer}: gray is 0, white {scale:.2g}, black {-scale:.2g}"
        return plot_filters(result.filters, result.labels, title)


def _are_class_templates(run: InspectedRun, filters: Filters) -> bool:
    """Return whether each filter is the template of a class: all that the model knows about the class."""
    return isinstance(run.objective, ClassificationObjective) and filters.layer == "head.projection"
