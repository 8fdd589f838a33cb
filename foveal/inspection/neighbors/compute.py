"""Which images are the nearest to one, by the features of a network and by their pixels."""

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
"""Pixels are compared after averaging over a grid of so many rows and columns, at most."""
CAVEAT = "distances depend on the layer and on how vectors are scaled: they rank images, they are no evidence"


class ImageVectors(NamedTuple):
    """Two vectors of each image: what the head is given, and its pixels."""

    features: Float[Tensor, "N D"]
    pixels: Float[Tensor, "N P"]


class NearestNeighbors:
    """The `k` nearest of all that are added, to each of the queries, nearest first.

        cosine      1 - a.b / (|a| |b|)  =  |a/|a| - b/|b||² / 2
        euclidean   |a - b|

    Differences are squared and summed, without the product that is faster: equal vectors have distance 0.
    """

    def __init__(self, queries: Float[Tensor, "Q D"], k: int, measure: DistanceMeasure):
        self.measure, self.k = measure, k
        self.queries = self._normalized(queries)
        self.distances: Float[Tensor, "Q k"] = queries.new_empty(len(queries), 0)
        self.rows: Int[Tensor, "Q k"] = torch.empty(len(queries), 0, dtype=torch.int64)
        self._count = 0

    def add(self, vectors: Float[Tensor, "N D"]) -> None:
        """More to choose from; their rows go on where the last ended. Of equal distances the first stays."""
        slow = "donot_use_mm_for_euclid_dist"
        found = torch.cdist(self.queries, self._normalized(vectors), compute_mode=slow)
        found = found.square() / 2 if self.measure == "cosine" else found
        rows = torch.arange(self._count, self._count + len(vectors)).expand(len(found), -1)
        self._count += len(vectors)
        distances, order = torch.cat([self.distances, found], 1).sort(dim=1, stable=True)
        self.distances = distances[:, : self.k]
        self.rows = torch.cat([self.rows, rows], 1).gather(1, order[:, : self.k])

    def of(self, query: int) -> list[tuple[int, float]]:
        """Return the rows of the nearest to a query, and their distances."""
        return [*zip(self.rows[query].tolist(), self.distances[query].tolist(), strict=True)]

    def _normalized(self, vectors: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        return F.normalize(vectors) if self.measure == "cosine" else vectors


def embed_images(model: Any, batches: Batches, progress: ProgressCallback) -> Iterator[ImageVectors]:
    """Of the images of an order, batch by batch; the features are the summary of the encoder's memory.

    The model is to be in evaluation mode.
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
    """The same queries in two spaces."""

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
    """The `k` nearest to each image of an order: by features in that measure, and by pixels, Euclidean."""
    features, pixels = map(torch.cat, zip(*embed_images(model, queries, progress), strict=True))
    found = NeighborsBySpace(NearestNeighbors(features, k, measure), NearestNeighbors(pixels, k, "euclidean"))
    for some in embed_images(model, candidates, progress):
        found.features.add(some.features)
        found.pixels.add(some.pixels)
    return found


def majority_labels(nearest: NearestNeighbors, labels: Sequence[str]) -> list[str]:
    """The label that most of the nearest have, for each query; among equals that of the nearest of them
    (Cover and Hart 1967)."""
    rows = [[labels[row] for row in found] for found in nearest.rows.tolist()]
    return [max(near, key=near.count) for near in rows]
