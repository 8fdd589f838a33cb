"""The images nearest to an image, by the features of a network and by pixels."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.training.protocols import Batches

DistanceMeasure = Literal["cosine", "euclidean"]
PIXEL_GRID = 16
"""Pixels are averaged over a grid of at most so many rows and columns before they are compared."""
CAVEAT = "distances depend on the layer and on how vectors are scaled: they rank images, they are no evidence"


class ImageVectors(NamedTuple):
    """Two vectors for each image: the features that the head reads, and the pixels."""

    features: Float[Tensor, "N D"]
    pixels: Float[Tensor, "N P"]


class NearestNeighbors:
    """The `k` nearest of all added vectors to each query, nearest first.

        cosine      1 - a.b / (|a| |b|)  =  |a/|a| - b/|b||² / 2
        euclidean   |a - b|

    Differences are squared and summed directly, so that equal vectors have distance 0. The faster matrix
    product would round.
    """

    def __init__(self, queries: Float[Tensor, "Q D"], k: int, measure: DistanceMeasure):
        self.measure, self.k = measure, k
        self.queries = self._normalized(queries)
        self.distances: Float[Tensor, "Q k"] = queries.new_empty(len(queries), 0)
        self.rows: Int[Tensor, "Q k"] = torch.empty(len(queries), 0, dtype=torch.int64)
        self._count = 0

    def add(self, vectors: Float[Tensor, "N D"]) -> None:
        """Add candidates. Their row numbers continue from the last. Ties go to the candidate added first."""
        exact = "donot_use_mm_for_euclid_dist"
        distances = torch.cdist(self.queries, self._normalized(vectors), compute_mode=exact)
        distances = distances.square() / 2 if self.measure == "cosine" else distances
        rows = torch.arange(self._count, self._count + len(vectors)).expand(len(distances), -1)
        self._count += len(vectors)
        distances, order = torch.cat([self.distances, distances], 1).sort(dim=1, stable=True)
        self.distances = distances[:, : self.k]
        self.rows = torch.cat([self.rows, rows], 1).gather(1, order[:, : self.k])

    def of(self, query: int) -> list[tuple[int, float]]:
        """Return the rows of the nearest candidates to a query, and their distances."""
        return [*zip(self.rows[query].tolist(), self.distances[query].tolist(), strict=True)]

    def _normalized(self, vectors: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        return F.normalize(vectors) if self.measure == "cosine" else vectors


def embed_images(model: Any, batches: Batches, progress: ProgressCallback) -> Iterator[ImageVectors]:
    """Yield the vectors of images, batch by batch; features are the summary of the encoder's memory.

    The model must be in evaluation mode.
    """
    device = next(model.parameters()).device
    for batch in iterate_batches(batches, progress):
        images = batch.columns["source"]
        side = min(PIXEL_GRID, images.shape[-1])
        with torch.inference_mode():
            memory, _ = model.encoder(images.to(device), None)
            features = memory.summary.float().cpu()
        yield ImageVectors(features, F.adaptive_avg_pool2d(images, side).flatten(1))


class NeighborsBySpace(NamedTuple):
    """The neighbors of the same queries by features and by pixels."""

    features: NearestNeighbors
    pixels: NearestNeighbors


def find_neighbors(
    model: Any,
    queries: Batches,
    candidates: Batches,
    k: int,
    measure: DistanceMeasure,
    progress: ProgressCallback,
) -> NeighborsBySpace:
    """Return the `k` nearest candidates of each query: by features with `measure`, by pixels with the
    Euclidean distance."""
    features, pixels = map(torch.cat, zip(*embed_images(model, queries, progress), strict=True))
    nearest = NeighborsBySpace(
        NearestNeighbors(features, k, measure), NearestNeighbors(pixels, k, "euclidean")
    )
    for vectors in embed_images(model, candidates, progress):
        nearest.features.add(vectors.features)
        nearest.pixels.add(vectors.pixels)
    return nearest


def majority_labels(nearest: NearestNeighbors, labels: Sequence[str]) -> list[str]:
    """Return the most frequent label among each query's neighbors (Cover and Hart 1967).

    Among equally frequent labels, the nearest neighbor decides.
    """
    neighbor_labels = [[labels[row] for row in rows] for rows in nearest.rows.tolist()]
    return [max(near, key=near.count) for near in neighbor_labels]
