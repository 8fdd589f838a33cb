"""The nearest images, against a slow search, and votes that are counted by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foveal.core.progress import no_progress
from foveal.inspection.neighbors.compute import (
    DistanceMeasure,
    NearestNeighbors,
    find_neighbors,
    majority_labels,
)

K = 4


def slow(query: np.ndarray, many: np.ndarray, measure: DistanceMeasure) -> np.ndarray:
    """Every distance by its definition."""
    if measure == "euclidean":
        return np.array([np.sqrt(sum((query - one) ** 2)) for one in many])
    size = np.linalg.norm
    return np.array([1 - (query @ one) / (size(query) * size(one)) for one in many])


@pytest.mark.parametrize("measure", ["cosine", "euclidean"])
@pytest.mark.parametrize("part", [1, 7, 50])
def test_as_a_slow_search(measure: DistanceMeasure, part: int) -> None:
    """However the candidates come, all at once or in parts."""
    draw = np.random.default_rng(0)
    queries, many = draw.normal(size=(6, 5)), draw.normal(size=(50, 5)) * draw.uniform(0.1, 9, (50, 1))
    found = NearestNeighbors(torch.from_numpy(queries), K, measure)
    for some in torch.from_numpy(many).split(part):
        found.add(some)
    for query, rows, distances in zip(queries, found.rows.tolist(), found.distances.numpy(), strict=True):
        right = slow(query, many, measure)
        assert rows == np.argsort(right)[:K].tolist()
        np.testing.assert_allclose(distances, np.sort(right)[:K], rtol=1e-9)


@pytest.mark.parametrize("measure", ["cosine", "euclidean"])
def test_duplicates_are_at_distance_0_and_the_first_comes_first(measure: DistanceMeasure) -> None:
    draw = torch.Generator().manual_seed(0)
    many = 100 + torch.randn(30, 700, generator=draw)
    many[20] = many[3]
    found = NearestNeighbors(many[3:4], K, measure)
    for some in many.split(8):
        found.add(some)
    assert found.rows[0, :2].tolist() == [3, 20]
    assert found.distances[0, :2].tolist() == [0, 0]
    assert found.distances[0, 2] > 0


def test_fewer_than_are_asked_for() -> None:
    found = NearestNeighbors(torch.zeros(2, 3), K, "euclidean")
    found.add(torch.ones(3, 3))
    assert found.rows.shape == (2, 3)


class FirstChannel(nn.Module):
    """Features are the first row of the first channel."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def encoder(self, images: Tensor, lengths: None) -> tuple[Any, Any]:
        return SimpleNamespace(summary=images[:, 0, 0]), {}


class Images:
    """Batches of three images."""

    def __init__(self, images: Tensor) -> None:
        self.parts = images.split(3)
        self.per_epoch = len(self.parts)

    def batch(self, epoch: int, index: int) -> Any:
        return SimpleNamespace(columns={"source": self.parts[index]})


@pytest.mark.parametrize("measure", ["cosine", "euclidean"])
def test_by_features_with_the_measure_and_by_pixels_with_the_distance(measure: DistanceMeasure) -> None:
    """Images of 4 x 4 pixels are compared pixel by pixel."""
    draw = torch.Generator().manual_seed(0)
    queries, many = torch.randn(4, 2, 4, 4, generator=draw), torch.randn(11, 2, 4, 4, generator=draw)
    many *= torch.rand(11, 1, 1, 1, generator=draw) * 9
    found = find_neighbors(FirstChannel(), Images(queries), Images(many), K, measure, no_progress)
    for row, query in enumerate(queries):
        features = slow(query[0, 0].numpy(), many[:, 0, 0].numpy(), measure)
        pixels = slow(query.flatten().numpy(), many.flatten(1).numpy(), "euclidean")
        assert [place for place, _ in found.features.of(row)] == np.argsort(features)[:K].tolist()
        assert [place for place, _ in found.pixels.of(row)] == np.argsort(pixels)[:K].tolist()
        np.testing.assert_allclose([d for _, d in found.pixels.of(row)], np.sort(pixels)[:K], rtol=1e-5)


def test_votes() -> None:
    found = NearestNeighbors(torch.zeros(1, 1), 5, "euclidean")
    found.add(torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]))
    assert majority_labels(found, ["a", "b", "a", "b", "c", "c"]) == ["a"]
    assert majority_labels(found, ["a", "b", "b", "c", "b", "b"]) == ["b"]
