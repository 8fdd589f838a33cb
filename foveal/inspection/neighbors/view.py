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
from foveal.inspection.base import Facts, InspectedRun, View
from foveal.inspection.image_queries import ImageQueries, load_image_queries, with_center_crop
from foveal.inspection.neighbors.compute import (
    CAVEAT,
    DistanceMeasure,
    NearestNeighbors,
    NeighborsBySpace,
    find_neighbors,
    majority_labels,
)
from foveal.inspection.neighbors.plot import NeighborImage, QueryNeighbors, plot_neighbors
from foveal.inspection.registry import register_view

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

    def sections(self) -> Iterator[str | Facts]:
        for row in self.rows:
            label = self.queries.labels[row]
            yield f"{self.queries.sources[row]}{': ' if label else ''}{label}"
            facts = []
            for space, near in self.neighbors._asdict().items():
                for rank, image in enumerate(self._nearest(near, row)):
                    text = f"{image['distance']:.4f}  {image['label']}  {image['source']}"
                    facts.append((f"  {'' if rank else space}", text))
            yield facts
        facts = [("caveat", CAVEAT)]
        if self.accuracy is not None:
            shares = ", ".join(f"{space} {100 * share:.1f} %" for space, share in self.accuracy.items())
            text = f"by the label that most of the {self.options.nearest} nearest have: {shares}"
            facts.insert(0, ("correct", text))
        yield facts

    def images(self) -> Iterator[QueryNeighbors]:
        """Yield the shown queries and their neighbors, to be drawn."""
        for row in self.rows:
            query = NeighborImage(self.queries.images.center_crop(row), self.queries.labels[row])
            yield QueryNeighbors(query, *(self._images(near, row) for near in self.neighbors))

    def _nearest(self, neighbors: NearestNeighbors, row: int) -> list[dict[str, Any]]:
        sources, labels = self.candidates.sources, self.candidates.references
        return [
            {"source": sources[candidate], "label": labels[candidate], "distance": distance}
            for candidate, distance in neighbors.of(row)
        ]

    def _images(self, neighbors: NearestNeighbors, row: int) -> list[NeighborImage]:
        examples, labels = self.candidates.examples, self.candidates.references
        return [
            NeighborImage(examples.center_crop(candidate), labels[candidate], distance)
            for candidate, distance in neighbors.of(row)
        ]


@register_view
class NeighborsView(View[NeighborsOptions, NeighborsResult]):
    name = "neighbors"
    summary = "The images nearest to an image, by a run's features and by pixels."
    Options = NeighborsOptions
    progress = "images read"

    def check(self, run: InspectedRun) -> None:
        if not run.task.trains_networks:
            path, name = run.run.path, run.task.name
            raise UserError(f"{path}: this view needs a run that labels images (this run's task is {name})")

    def compute(
        self, run: InspectedRun, options: NeighborsOptions, log: Log, progress: ProgressCallback
    ) -> NeighborsResult:
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
        return NeighborsResult(path, options, queries, rows, prepared.train, neighbors, accuracy)

    def plot(self, result: NeighborsResult) -> bytes:
        return plot_neighbors([*result.images()], result.options.measure)


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
