"""The view `glimpses`: the places where a run looks in an image, and its prediction after each glimpse."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.split_data import evenly_spaced
from foveal.data.images.image_batches import center_crops, collate_images, standardize_images
from foveal.inspection.base import Facts, InspectedRun, View
from foveal.inspection.image_queries import load_image_queries
from foveal.inspection.registry import register_view
from foveal.tasks.glimpses.glimpse_sensor import glimpse_sensor
from foveal.tasks.glimpses.plot import GlimpsedImage, plot_glimpses
from foveal.tasks.glimpses.task import GlimpsesTask
from foveal.tasks.session import EXAMPLES_SHOWN


@dataclass(frozen=True)
class GlimpsesOptions:
    query: str | None = None
    """An image, a folder or zip of images; a few of the run's held-out images if not given."""


class NamedImage(NamedTuple):
    """An image with its glimpses, and its name."""

    source: str
    image: GlimpsedImage


@dataclass(frozen=True)
class GlimpsesResult:
    run: str
    images: Sequence[NamedImage]

    def to_json(self) -> dict[str, Any]:
        images = []
        for source, image in self.images:
            path = [
                {"place": place.tolist(), "answer": label, "probability": probability}
                for place, (label, probability) in zip(image.places, image.predictions, strict=True)
            ]
            images.append({"source": source, "label": image.label, "path": path})
        return {"run": self.run, "images": images}

    def sections(self) -> Iterator[str | Facts]:
        for source, image in self.images:
            yield source if image.label is None else f"{source}: {image.label}"
            facts = []
            for number, ((down, across), (label, probability)) in enumerate(
                zip(image.places, image.predictions, strict=True), 1
            ):
                place = f"{down:+.2f} down, {across:+.2f} across"
                facts.append((f"  {number}", f"{place}: {label}, {100 * probability:.1f} %"))
            yield facts


@register_view
class GlimpsesView(View[GlimpsesOptions, GlimpsesResult]):
    name = "glimpses"
    summary = "The places where a run looked in an image, and its prediction after each glimpse."
    Options = GlimpsesOptions
    progress = "images seen"

    def check(self, run: InspectedRun) -> None:
        if not isinstance(run.task, GlimpsesTask):
            raise UserError(
                f"{run.run.path}: this run has no glimpses; train one with foveal train DATA --model glimpses"
            )

    def compute(
        self, run: InspectedRun, options: GlimpsesOptions, log: Log, progress: ProgressCallback
    ) -> GlimpsesResult:
        prepared = None if options.query is not None else run.training_data(log)
        images, sources, labels = load_image_queries(run, prepared, options.query, log)
        count = len(images) if options.query is not None else EXAMPLES_SHOWN
        rows = np.array(evenly_spaced(len(images), count), np.int64)
        pixels = standardize_images(center_crops(images, rows), images)
        with torch.inference_mode():
            rollout = run.objective.rollout(collate_images(images, rows, pixels))
        probabilities = rollout.logits.float().softmax(2).cpu().numpy()
        glimpsed = _glimpsed_images(run, pixels, rollout.locations.cpu(), probabilities)
        named = [
            NamedImage(sources[row], image._replace(label=labels[row] or None))
            for row, image in zip(rows.tolist(), glimpsed, strict=True)
        ]
        return GlimpsesResult(str(run.run.path), named)

    def plot(self, result: GlimpsesResult) -> bytes:
        return plot_glimpses([image for _, image in result.images])


def _glimpsed_images(
    run: InspectedRun, images: torch.Tensor, locations: torch.Tensor, probabilities: np.ndarray
) -> Iterator[GlimpsedImage]:
    """Yield the images with their glimpses and predictions, without labels."""
    settings, labels = run.task.settings, run.processor.target.labels
    statistics = run.processor.source.statistics
    size, scales = settings.glimpse_size, settings.glimpse_scales
    glimpses = torch.stack([glimpse_sensor(images, place, size, scales) for place in locations.unbind(1)], 1)
    for number, chances in enumerate(probabilities):
        predictions = [(labels[row.argmax()], float(row.max())) for row in chances]
        pixels, squares = statistics.to_pixels(images[number]), statistics.to_pixels(glimpses[number])
        yield GlimpsedImage(pixels, locations[number].numpy(), squares, predictions, None)
