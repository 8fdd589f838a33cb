"""The nearest images, against a slow search, and votes that are counted by hand."""

import numpy as np
import pytest
import torch

from foveal.inspection.neighbors.compute import DistanceMeasure, NearestNeighbors, majority_labels

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


def test_votes() -> None:
    found = NearestNeighbors(torch.zeros(1, 1), 5, "euclidean")
    found.add(torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]))
    assert majority_labels(found, ["a", "b", "a", "b", "c", "c"]) == ["a"]
    assert majority_labels(found, ["a", "b", "b", "c", "b", "b"]) == ["b"]
