"""The view `neighbors` of a run: the images nearest to an image, by features and by pixels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.split_data import SplitData, evenly_spaced
from foveal.data.images.image_examples import ImageExamples
from foveal.inspection.image_queries import ImageQueries, load_image_queries, with_center_crop
from foveal.inspection.neighbors.compute import (
    CAVEAT,
    DistanceMeasure,
    NearestNeighbors,
    NeighborsBySpace,
    find_neighbors,
    majority_labels,
)
from foveal.inspection.panels import Caption, ImageRow, Images, Table, Tile, answer_role
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

QUERIES_SHOWN = 5
"""Held-out images that are shown where the user names no query."""


@dataclass(frozen=True)
class NeighborsOptions:
    query: str | None = None
    """An image, or a folder or zip of images; if not given, the run's held-out images, with the share whose
    nearest images have their label."""
    data: str | None = None
    """The images to search for neighbors; the run's training images if not given."""
    nearest: WholeNumber = 5
    """How many neighbors."""
    measure: DistanceMeasure = "cosine"
    """The distance between features."""


@dataclass(frozen=True)
class NeighborsResult:
    run: str
    options: NeighborsOptions
    queries: ImageQueries
    rows: Sequence[int]
    """The queries that are shown."""
    candidates: SplitData[ImageExamples]
    neighbors: NeighborsBySpace
    accuracy: dict[str, float] | None
    """By space, the fraction of queries whose nearest images mostly have their label. None where unknown."""

    def to_json(self) -> dict[str, Any]:
        accuracy = {} if self.accuracy is None else {"accuracy": self.accuracy}
        queries = [
            {"source": self.queries.sources[row], "label": self.queries.labels[row] or None}
            | {space: self._nearest(near, row) for space, near in self.neighbors._asdict().items()}
            for row in self.rows
        ]
        return {"run": self.run, "measure": self.options.measure} | accuracy | {"queries": queries}

    def payload(self) -> Payload:
        """Return the queries with their neighbors, as images and as a table."""
        rows = [row for number in self.rows for row in self._image_rows(number)]
        panels = (Images("", tuple(rows)), self._table())
        facts: list[tuple[str, str]] = []
        if self.accuracy is not None:
            shares = ", ".join(f"{space} {100 * share:.1f} %" for space, share in self.accuracy.items())
            text = f"by the label that most of the {self.options.nearest} nearest have: {shares}"
            facts.append(("correct", text))
        title = f"{self.run}: nearest images by features ({self.options.measure}) and by pixels"
        return Payload("neighbors", self.run, title, panels, CAVEAT, "exact", tuple(facts), self.to_json())

    def _table(self) -> Table:
        columns = ("image", "label", "by", "distance", "its label", "nearest image")
        rows = [
            (
                self.queries.sources[row],
                self.queries.labels[row] or "",
                space,
                f"{image['distance']:.4f}",
                image["label"],
                image["source"],
            )
            for row in self.rows
            for space, near in self.neighbors._asdict().items()
            for image in self._nearest(near, row)
        ]
        return Table("", columns, tuple(rows))

    def _image_rows(self, row: int) -> Iterator[ImageRow]:
        """Yield the query and its neighbors by features, then its neighbors by pixels."""
        label = self.queries.labels[row] or None
        query = Tile(self.queries.images.center_crop(row), (Caption(label or ""),))
        names = f"features\n{self.options.measure}", "pixels\neuclidean"
        for name, near, first in zip(names, self.neighbors, (query, None), strict=True):
            yield ImageRow((first, *self._tiles(near, row, label)), name)

    def _nearest(self, neighbors: NearestNeighbors, row: int) -> list[dict[str, Any]]:
        sources, labels = self.candidates.sources, self.candidates.references
        return [
            {"source": sources[candidate], "label": labels[candidate], "distance": distance}
            for candidate, distance in neighbors.of(row)
        ]

    def _tiles(self, neighbors: NearestNeighbors, row: int, label: str | None) -> Iterator[Tile]:
        examples, labels = self.candidates.examples, self.candidates.references
        for candidate, distance in neighbors.of(row):
            name = labels[candidate]
            captions = Caption(name, answer_role(name, label)), Caption(f"{distance:.3g}", "muted")
            yield Tile(examples.center_crop(candidate), captions)


@register_view("neighbors")
class NeighborsView(View[NeighborsOptions]):
    summary = "The images nearest to an image, by a run's features and by pixels."
    Options = NeighborsOptions
    progress = "images read"

    def fits(self, run: InspectedRun) -> str:
        if run.task.trains_networks:
            return ""
        return f"this view needs a run that labels images (this run's task is {run.task.name})"

    def compute(
        self, run: InspectedRun, options: NeighborsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if options.nearest < 1:
            raise UserError(f"--nearest {options.nearest}: expected 1 or more")
        prepared = _prepare_candidates(run, options, log)
        task = with_center_crop(run.task)
        queries = load_image_queries(run, prepared, options.query, log)
        batches, candidates = task.example_batches(queries.images), task.eval_batches(prepared.train)
        neighbors = find_neighbors(run.model, batches, candidates, options.nearest, options.measure, progress)
        rows, accuracy = [*range(len(queries.images))], None
        if options.query is None:
            rows = evenly_spaced(len(queries.images), QUERIES_SHOWN)
            accuracy = _accuracy(neighbors, prepared.train.references, queries.labels)
        path = str(run.run.path)
        result = NeighborsResult(path, options, queries, rows, prepared.train, neighbors, accuracy)
        return result.payload()


def _prepare_candidates(
    run: InspectedRun, options: NeighborsOptions, log: Log
) -> PreparedData[Any, SplitData[ImageExamples]]:
    if options.data is None:
        return run.training_data(log)
    reused = ReusedProcessors(run.processor.source, run.processor.target.labels)
    return run.prepare_other(options.data, log, reused, split=options.query is None)


def _accuracy(
    neighbors: NeighborsBySpace, candidate_labels: Sequence[str], labels: Sequence[str]
) -> dict[str, float]:
    """Return the fraction of queries with the label that most of their nearest images have, by space."""
    votes = {space: majority_labels(near, candidate_labels) for space, near in neighbors._asdict().items()}
    return {space: float(np.mean(np.array(vote) == np.array(labels))) for space, vote in votes.items()}
