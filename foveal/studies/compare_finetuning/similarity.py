"""How similar new images are to those that an encoder was trained on, measured before any training."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.split_data import SplitData, evenly_spaced
from foveal.data.images.image_examples import ImageExamples
from foveal.data.open import DataPaths
from foveal.inspection.image_queries import with_center_crop
from foveal.inspection.neighbors.compute import find_neighbors, majority_labels
from foveal.studies.compare_finetuning.advice import Advice, advise
from foveal.studies.compare_finetuning.ways import with_overrides
from foveal.tasks.session import Session

NEIGHBORS = 5
"""Neighbors that vote."""
MAX_TRAINING_IMAGES, MAX_QUERIES = 2000, 500
"""Most training images to search for neighbors; most held-out images that are looked up."""


class FeatureSimilarity(NamedTuple):
    """The size of the data, and the accuracy of nearest neighbors before any training."""

    images: int
    classes: int
    features: float
    """The accuracy by the run's features."""
    pixels: float
    """The accuracy by pixels."""

    @property
    def advice(self) -> Advice:
        """The usual advice for these numbers."""
        return advise(self.images / self.classes, self.features, self.pixels)


def feature_similarity(
    base: Session, overrides: Sequence[str], paths: DataPaths, log: Log, progress: ProgressCallback
) -> FeatureSimilarity:
    """Return how often the nearest images have the correct label, by features of a run and by pixels.

    Raises: UserError: the run has no encoder to compare, or the data have no held-out images.
    """
    task: Any = with_overrides(base, overrides)
    reused = ReusedProcessors(base.processor.source, base.processor.target.labels)
    prepared: PreparedData[Any, SplitData[ImageExamples]] = task.prepare(paths, log, reused)
    held_out = prepared.held_out
    if held_out is None:
        raise UserError(
            f"{paths.data}: no held-out images to measure on: give data.test_fraction=0.2, or data with "
            "--test"
        )
    queries, query_labels = _subset(held_out, MAX_QUERIES)
    candidates, labels = _subset(prepared.train, MAX_TRAINING_IMAGES)
    task = with_center_crop(task)
    looked_up, searched = (task.example_batches(images) for images in (queries, candidates))
    spaces = find_neighbors(base.model, looked_up, searched, NEIGHBORS, "cosine", progress)
    accuracies = [
        float(np.mean(np.array(majority_labels(nearest, labels)) == np.array(query_labels)))
        for nearest in spaces
    ]
    return FeatureSimilarity(len(prepared.train), len(prepared.processor.target.labels), *accuracies)


def _subset(images: SplitData[ImageExamples], max_images: int) -> tuple[ImageExamples, list[str]]:
    """Return at most `max_images` images, evenly spaced from the first to the last, and their labels."""
    rows = evenly_spaced(len(images), max_images)
    return images.examples.subset(rows), [images.references[row] for row in rows]
