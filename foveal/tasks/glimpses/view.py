"""The view `glimpses`: the places where a run looks in an image, and its prediction after each glimpse."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.split_data import evenly_spaced
from foveal.data.images.image_batches import center_crops, collate_images, standardize_images
from foveal.inspection.image_queries import load_image_queries
from foveal.inspection.panels import Caption, ImageRow, Images, Mark, Table, Tile, answer_role
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View
from foveal.tasks.glimpses.glimpse_sensor import glimpse_sensor
from foveal.tasks.glimpses.task import GlimpsesTask
from foveal.tasks.session import EXAMPLES_SHOWN

CAVEAT = "the centers of glimpses; what lies around them is seen, too, at a coarser scale"
TILE_SIZE = 1.2
"""Inches of an image's longer side."""


@dataclass(frozen=True)
class GlimpsesOptions:
    query: str | None = None
    """An image, a folder or zip of images; a few of the run's held-out images if not given."""


class GlimpsedImage(NamedTuple):
    """An image with its T glimpses. A glimpse is several squares, from the narrowest to the widest."""

    source: str
    pixels: UInt8[np.ndarray, "H W C"]
    places: Float[np.ndarray, "T 2"]
    """Vertical and horizontal, from -1 to 1."""
    glimpses: UInt8[np.ndarray, "T S side side C"]
    predictions: Sequence[tuple[str, float]]
    """The likeliest label after each glimpse, and its probability."""
    label: str | None
    """The correct label, if known."""


@register_view("glimpses")
class GlimpsesView(View[GlimpsesOptions]):
    summary = "The places where a run looked in an image, and its prediction after each glimpse."
    Options = GlimpsesOptions
    progress = "images seen"

    def fits(self, run: InspectedRun) -> str:
        if isinstance(run.task, GlimpsesTask):
            return ""
        return "this run has no glimpses; train one with foveal train DATA --model glimpses"

    def compute(
        self, run: InspectedRun, options: GlimpsesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        prepared = None if options.query is not None else run.training_data(log)
        images, sources, labels = load_image_queries(run, prepared, options.query, log)
        count = len(images) if options.query is not None else EXAMPLES_SHOWN
        rows = np.array(evenly_spaced(len(images), count), np.int64)
        pixels = standardize_images(center_crops(images, rows), images)
        with torch.inference_mode():
            rollout = run.objective.rollout(collate_images(images, rows, pixels))
        probabilities = rollout.logits.float().softmax(2).cpu().numpy()
        names = [(sources[row], labels[row] or None) for row in rows.tolist()]
        glimpsed = _glimpsed_images(run, pixels, rollout.locations.cpu(), probabilities, names)
        return glimpses_payload(str(run.run.path), [*glimpsed])


def _glimpsed_images(
    run: InspectedRun,
    images: torch.Tensor,
    locations: torch.Tensor,
    probabilities: np.ndarray,
    names: Sequence[tuple[str, str | None]],
) -> Iterator[GlimpsedImage]:
    """Yield the images with their glimpses, predictions, names and labels."""
    settings, labels = run.task.settings, run.processor.target.labels
    statistics = run.processor.source.statistics
    size, scales = settings.glimpse_size, settings.glimpse_scales
    glimpses = torch.stack([glimpse_sensor(images, place, size, scales) for place in locations.unbind(1)], 1)
    for number, (chances, (source, label)) in enumerate(zip(probabilities, names, strict=True)):
        predictions = [(labels[row.argmax()], float(row.max())) for row in chances]
        pixels, squares = statistics.to_pixels(images[number]), statistics.to_pixels(glimpses[number])
        yield GlimpsedImage(source, pixels, locations[number].numpy(), squares, predictions, label)


def glimpses_payload(subject: str, images: Sequence[GlimpsedImage]) -> Payload:
    """Return each image with the path over it and its glimpses beside it, and a table of the predictions."""
    values, rows = [], []
    for image in images:
        path = []
        steps = zip(image.places, image.predictions, strict=True)
        for number, ((down, across), (label, probability)) in enumerate(steps, 1):
            path.append({"place": [float(down), float(across)], "answer": label, "probability": probability})
            place = f"{down:+.2f}", f"{across:+.2f}"
            share = f"{100 * probability:.1f} %"
            rows.append((image.source, image.label or "", str(number), *place, label, share))
        values.append({"source": image.source, "label": image.label, "path": path})
    table = Table(
        "", ("image", "label", "glimpse", "down", "across", "prediction", "probability"), tuple(rows)
    )
    panels = (Images("", tuple(map(_row, images)), TILE_SIZE), table)
    title, numbers = f"Glimpses of {subject}", {"run": subject, "images": values}
    return Payload("glimpses", subject, title, panels, CAVEAT, "exact", values=numbers)


def _row(image: GlimpsedImage) -> ImageRow:
    whole = Tile(image.pixels, (Caption(image.label or ""),), tuple(_path(image)))
    glimpses = [
        Tile(
            composite_glimpse(squares),
            (Caption(f"{100 * share:.0f} %  {label}", answer_role(label, image.label)),),
        )
        for squares, (label, share) in zip(image.glimpses, image.predictions, strict=True)
    ]
    return ImageRow((whole, *glimpses))


def _path(image: GlimpsedImage) -> Iterator[Mark]:
    """Yield the numbered path of the glimpses over an image, and the narrowest square of each."""
    points = (image.places + 1) / 2 * image.pixels.shape[:2] - 0.5
    yield Mark(points, numbered=True)
    half = image.glimpses.shape[2] / 2
    for point in points:
        yield Mark(point + half * np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)]), closed=True)


def composite_glimpse(squares: UInt8[np.ndarray, "S side side C"]) -> UInt8[np.ndarray, "wide wide C"]:
    """Return a single image of the squares around a location: the widest square, with narrower squares over
    its center."""
    scales, side = squares.shape[:2]
    wide = side << (scales - 1)
    image = np.zeros((wide, wide, squares.shape[-1]), np.uint8)
    for scale in reversed(range(scales)):
        start = (wide - (side << scale)) // 2
        fine = squares[scale].repeat(1 << scale, 0).repeat(1 << scale, 1)
        image[start : start + len(fine), start : start + len(fine)] = fine
    return image
